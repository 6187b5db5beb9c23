#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "hosts/c10d/store/papers.hpp"
#include "hosts/c10d/store/store.hpp"

namespace rubato::c10d_hosts_detail {

/// A thread that tells other hosts that this one is there, and looks for those that want to take
/// part. What it cannot do because the store does not answer it tries again: the training does not
/// depend on it.
class Beacon {
 public:
  /// Makes a connection of its own to the store.
  using Open = std::function<std::unique_ptr<Store>()>;

  /// `store_name` is that of the store that is known (enter()).
  Beacon(Open open, std::string store_name);
  /// Waits for the thread.
  ~Beacon();
  Beacon(const Beacon&) = delete;
  Beacon& operator=(const Beacon&) = delete;

  /// From now on it speaks for the host of these papers, and puts them into the store where that
  /// has been started again.
  void set(const Papers& papers);
  /// How many steps this host has done; empty where it has no state. Told with the next sign of
  /// life, and when this ends. Waits for nothing: it is called in every step.
  void tell_steps(std::optional<std::int64_t> steps) noexcept {
    // Relaxed: a number for people to read, which says nothing of other memory.
    steps_.store(steps.value_or(kNoSteps), std::memory_order_relaxed);
  }
  /// Whether there has to be another generation, as far as has been seen since set(): a host has
  /// come that may take part in it, or others have taken this one's place.
  [[nodiscard]] bool calls_for_regroup() const;

 private:
  static constexpr std::int64_t kNoSteps = -1;

  void run();
  [[nodiscard]] Papers papers() const;
  void beat(Store& store, const Papers& papers);
  void tell_progress(Store& store, const Papers& papers);
  // One that has not been told of.
  [[nodiscard]] std::optional<HostNumber> arrival(Store& store, const Papers& papers) const;
  // False where the papers have changed since.
  [[nodiscard]] bool call_for_regroup(const Papers& papers);

  Open open_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Below: with the mutex.
  bool ends_ = false;
  Papers papers_;
  bool calls_for_regroup_ = false;

  std::atomic<std::int64_t> steps_ = kNoSteps;

  // The thread's own.
  std::string store_name_;
  // A host is told of once.
  HostNumber last_told_ = 0;
  HostNumber spoken_for_ = 0;
  // Since when it has told the progress of which host.
  HostNumber tells_of_ = 0;
  std::int64_t came_ = 0;
  std::int64_t beats_ = 0;
  // Last: it uses all of the above.
  std::thread thread_;
};

}  // namespace rubato::c10d_hosts_detail
