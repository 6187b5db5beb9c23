#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "hosts/run_status/liveness.hpp"
#include "hosts/run_status/members.hpp"
#include "membership.hpp"
#include "store.hpp"

namespace rubato::hosts_detail {

/// A host's record in the store. A store that was started again is empty: each of the living
/// hosts puts its record there again, which restores the run.
struct HostRecord {
  RunKeys keys{};
  HostNumber own = 0;
  std::string process{};
  std::string greeting{};
  std::string proof{};
  /// The generation in which the host has its place, and its text in the store; its number is 0 if
  /// there is none.
  Members members{};
  std::string members_text{};
  /// Folder into which the host writes the run; empty if it does not.
  std::string folder{};
};

enum class Entry {
  /// The store is the known one, and so is the run in it.
  known,
  /// The store is a new one; this host has restored the run in it as far as it knows it.
  restored,
  /// The store is a new one, and this host has no place in a run: it comes as a new host.
  without_place,
  /// The store has a run of other hosts under that name, or the run has continued without this
  /// host.
  displaced,
};

/// Looks at the store behind a new connection. `store_name` is the name of the known store, and is
/// set to that of this one. A host that has a place puts its record into a new store and replaces
/// whatever was begun there since, because its run is older. Throws StoreLost.
[[nodiscard]] Entry enter(Store& store, std::string& store_name, const HostRecord& record);

/// Sees which hosts of a run are alive, by their signs of life in the store and, on this machine,
/// by their processes.
class Watch {
 public:
  /// The store must outlive the watch.
  Watch(Store& store, RunKeys keys) : store_(store), keys_(std::move(keys)) {}

  /// Throws StoreLost.
  [[nodiscard]] Life life_of(HostNumber host);
  /// Time since this watch first looked for the host.
  [[nodiscard]] milliseconds looked_for(HostNumber host);

 private:
  struct Seen {
    Clock::time_point first_look;
    Clock::time_point last_sign;
    std::optional<std::string> sign;
    bool has_moved = false;
    bool is_gone = false;
    std::optional<std::string> process;
  };

  Seen& seen_of(HostNumber host);

  Store& store_;
  RunKeys keys_;
  std::map<HostNumber, Seen> seen_;
};

/// A thread that tells other hosts that this one is alive, and looks for those that want to join.
/// It retries while the store does not answer; training does not depend on it.
class Heartbeat {
 public:
  /// Opens another connection to the store.
  using Open = std::function<std::unique_ptr<Store>()>;

  /// `store_name` is the name of the store that is known (enter()).
  Heartbeat(Open open, std::string store_name);
  /// Waits for the thread.
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  /// Sets the host that the heartbeat speaks for. Its record is restored in a store that has been
  /// started again.
  void set(const HostRecord& record);
  /// Sets the number of steps that this host has done; empty if it has no state. It is told with
  /// the next sign of life and by the destructor. Does not block: it is called in every step.
  void report_steps(std::optional<std::int64_t> steps) noexcept {
    // Relaxed: the number alone is told, and says nothing of other memory.
    steps_.store(steps.value_or(kNoSteps), std::memory_order_relaxed);
  }
  /// True if there has to be another generation, as far as has been seen since set(): a host has
  /// come that may join, or others have taken this one's place.
  [[nodiscard]] bool calls_for_regroup() const;

 private:
  static constexpr std::int64_t kNoSteps = -1;

  void run();
  [[nodiscard]] HostRecord record() const;
  void beat(Store& store, const HostRecord& record);
  void report_progress(Store& store, const HostRecord& record);
  // The first newcomer that has not been reported yet.
  [[nodiscard]] std::optional<HostNumber> arrival(Store& store, const HostRecord& record) const;
  [[nodiscard]] bool is_current(const HostRecord& record) const;
  // Returns false if the record has changed since.
  [[nodiscard]] bool call_for_regroup(const HostRecord& record);

  Open open_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // The members up to steps_ are guarded by the mutex.
  bool ends_ = false;
  HostRecord record_;
  bool calls_for_regroup_ = false;

  std::atomic<std::int64_t> steps_ = kNoSteps;

  // The members below are used by the thread alone.
  std::string store_name_;
  // The last newcomer that was reported: each is reported once.
  HostNumber last_reported_ = 0;
  HostNumber spoken_for_ = 0;
  // The host whose progress is reported, and since when, in seconds since 1970.
  HostNumber reports_for_ = 0;
  std::int64_t came_ = 0;
  std::int64_t beats_ = 0;
  // The thread is the last member because it uses all of the above.
  std::thread thread_;
};

}  // namespace rubato::hosts_detail
