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

/// A thread that tells other hosts that this one is alive, and looks for those that want to join.
/// It retries while the store does not answer; training does not depend on it.
class Beacon {
 public:
  /// Opens another connection to the store.
  using Open = std::function<std::unique_ptr<Store>()>;

  /// `store_name` is the name of the store that is known (enter()).
  Beacon(Open open, std::string store_name);
  /// Waits for the thread.
  ~Beacon();
  Beacon(const Beacon&) = delete;
  Beacon& operator=(const Beacon&) = delete;

  /// Sets the host that the beacon speaks for. Its papers are restored in a store that has been
  /// started again.
  void set(const Papers& papers);
  /// Sets the number of steps that this host has done; empty if it has no state. It is told with
  /// the next sign of life and by the destructor. Does not block: it is called in every step.
  void tell_steps(std::optional<std::int64_t> steps) noexcept {
    // Relaxed: a number for people to read, which says nothing of other memory.
    steps_.store(steps.value_or(kNoSteps), std::memory_order_relaxed);
  }
  /// True if there has to be another generation, as far as has been seen since set(): a host has
  /// come that may join, or others have taken this one's place.
  [[nodiscard]] bool calls_for_regroup() const;

 private:
  static constexpr std::int64_t kNoSteps = -1;

  void run();
  [[nodiscard]] Papers papers() const;
  void beat(Store& store, const Papers& papers);
  void tell_progress(Store& store, const Papers& papers);
  // The first newcomer that has not been reported yet.
  [[nodiscard]] std::optional<HostNumber> arrival(Store& store, const Papers& papers) const;
  // Returns false if the papers have changed since.
  [[nodiscard]] bool call_for_regroup(const Papers& papers);

  Open open_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // The members up to steps_ are guarded by the mutex.
  bool ends_ = false;
  Papers papers_;
  bool calls_for_regroup_ = false;

  std::atomic<std::int64_t> steps_ = kNoSteps;

  // The members below are used by the thread alone.
  std::string store_name_;
  // The last newcomer that was reported: each is reported once.
  HostNumber last_told_ = 0;
  HostNumber spoken_for_ = 0;
  // The host whose progress is told, and since when, in seconds since 1970.
  HostNumber tells_of_ = 0;
  std::int64_t came_ = 0;
  std::int64_t beats_ = 0;
  // The thread is the last member because it uses all of the above.
  std::thread thread_;
};

}  // namespace rubato::c10d_hosts_detail
