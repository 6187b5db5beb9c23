#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "c10d/members.hpp"
#include "c10d/store.hpp"

namespace rubato::c10d_hosts_detail {

/// A thread that tells other hosts that this one is there, and looks for those that want to take
/// part. What it cannot do because the store does not answer it tries again: the training does not
/// depend on it.
class Beacon {
 public:
  /// Makes a connection of its own to the store.
  using Open = std::function<std::unique_ptr<Store>()>;

  explicit Beacon(Open open);
  /// Waits for the thread.
  ~Beacon();
  Beacon(const Beacon&) = delete;
  Beacon& operator=(const Beacon&) = delete;

  /// From now on it speaks for this host, which takes part in the run with these, or does not yet.
  void set(HostNumber host, const Members& members);
  /// Whether a host has come since set() that may take part in the next generation.
  [[nodiscard]] bool has_arrivals() const;

 private:
  void run();
  void beat(Store& store);
  void look_for_arrivals(Store& store, const Members& members);

  Open open_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Below: with the mutex.
  bool ends_ = false;
  HostNumber host_ = 0;
  Members members_;
  bool has_arrivals_ = false;
  // A host is told of once.
  HostNumber last_told_ = 0;

  // The thread's own.
  std::int64_t beats_ = 0;
  // Last: it uses all of the above.
  std::thread thread_;
};

}  // namespace rubato::c10d_hosts_detail
