// Heartbeat changes its host's sign of life every kHeartbeatInterval, and Watch takes a host for
// gone whose sign has stood still for kHeartbeatTimeout, whose last sign is kLeft, or whose process
// on this machine has ended. Watch measures with its own clock when a sign changes, so the clocks
// of machines need not agree. The heartbeat has a connection of its own and opens a new one after
// every error; enter() looks at the store behind each new connection. A store with another name was
// started again: each host with a place puts its record there, and the run's key last
// (docs/adr/0050-membership.md).

#include "presence.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "hosts/run_status/greeting.hpp"
#include "hosts/run_status/liveness.hpp"

namespace rubato::hosts_detail {

namespace {

// The largest number that any host is known to have: later hosts have to get larger ones.
HostNumber last_known(const HostRecord& record) {
  HostNumber last = std::max(record.own, record.members.first_open - 1);
  for (const Member& member : record.members.hosts) last = std::max(last, member.host);
  for (const auto* const numbers : {&record.members.out, &record.members.passed}) {
    if (!numbers->empty()) last = std::max(last, *numbers->rbegin());
  }
  return last;
}

// Puts the record into a store that was started again. Returns false if the run has continued
// without this host.
bool restore(Store& store, const HostRecord& record) {
  const RunKeys& keys = record.keys;
  const std::int64_t generation = record.members.generation;
  if (!store.put(keys.turn(generation), record.members_text)) return false;
  static_cast<void>(store.put(keys.arrivals(), fmt::to_string(last_known(record))));
  store.set(keys.process(record.own), record.process);
  store.set(keys.greeting(record.own), record.greeting);
  store.set(keys.proof(record.own), record.proof);
  static_cast<void>(store.put(keys.life(record.own), "0"));
  const auto newest = store.find(keys.newest());
  if (!newest || parse_whole(*newest, 1, kMostNumbers) < generation) {
    store.set(keys.newest(), fmt::to_string(generation));
  }
  if (!record.folder.empty()) {
    store.set(keys.writer(), text_of(AnnouncedWriter{record.own, record.folder}));
  }
  // The run's key comes last: a host that finds it finds all the rest.
  store.set(kRunKey, keys.run());
  return true;
}

}  // namespace

Entry enter(Store& store, std::string& store_name, const HostRecord& record) {
  static_cast<void>(store.put(kStoreKey, new_nonce()));
  const std::string found = store.find(kStoreKey).value_or("");
  const bool is_new = std::exchange(store_name, found) != found;
  if (record.members.generation == 0) return is_new ? Entry::without_place : Entry::known;
  if (is_new) return restore(store, record) ? Entry::restored : Entry::displaced;
  return store.find(kRunKey) == record.keys.run() ? Entry::known : Entry::displaced;
}

Watch::Seen& Watch::seen_of(HostNumber host) {
  const auto [found, is_new] = seen_.try_emplace(host);
  if (is_new) found->second.first_look = found->second.last_sign = Clock::now();
  return found->second;
}

Life Watch::life_of(HostNumber host) {
  Seen& seen = seen_of(host);
  if (seen.is_gone) return Life::gone;
  const auto sign = store_.find(keys_.life(host));
  if (!seen.process) seen.process = store_.find(keys_.process(host));
  const ProcessState process =
      seen.process ? state_of_process(*seen.process) : ProcessState::unknown;
  const Clock::time_point now = Clock::now();
  if (sign != seen.sign) {
    seen.has_moved = seen.has_moved || seen.sign.has_value();
    seen.sign = sign;
    seen.last_sign = now;
  }
  seen.is_gone = sign == kLeft || process == ProcessState::ended;
  // A host that was only stopped, or cut off, may be heard of again.
  if (seen.is_gone || now - seen.last_sign >= kHeartbeatTimeout) return Life::gone;
  return process == ProcessState::running || seen.has_moved ? Life::alive : Life::unknown;
}

milliseconds Watch::looked_for(HostNumber host) {
  return std::chrono::floor<milliseconds>(Clock::now() - seen_of(host).first_look);
}

Heartbeat::Heartbeat(Open open, std::string store_name)
    : open_(std::move(open)), store_name_(std::move(store_name)), thread_([this] { run(); }) {}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Heartbeat::set(const HostRecord& record) {
  {
    const std::lock_guard lock(mutex_);
    calls_for_regroup_ = calls_for_regroup_ && is_current(record);
    record_ = record;
  }
  changed_.notify_all();
}

bool Heartbeat::is_current(const HostRecord& record) const {
  return record_.own == record.own && record_.members.generation == record.members.generation;
}

bool Heartbeat::calls_for_regroup() const {
  const std::lock_guard lock(mutex_);
  return calls_for_regroup_;
}

HostRecord Heartbeat::record() const {
  const std::lock_guard lock(mutex_);
  return record_;
}

bool Heartbeat::call_for_regroup(const HostRecord& record) {
  const std::lock_guard lock(mutex_);
  calls_for_regroup_ = calls_for_regroup_ || is_current(record);
  return is_current(record);
}

void Heartbeat::run() {
  std::unique_ptr<Store> store;
  std::unique_lock lock(mutex_);
  while (!ends_) {
    if (record_.own != 0) {
      lock.unlock();
      try {
        const HostRecord record = this->record();
        const bool is_new = store == nullptr;
        if (is_new) store = open_();
        if (is_new && enter(*store, store_name_, record) == Entry::displaced) {
          static_cast<void>(call_for_regroup(record));
        }
        beat(*store, record);
      } catch (const std::exception&) {
        // The next beat opens a new connection.
        store.reset();
      }
      lock.lock();
    }
    if (!ends_) changed_.wait_for(lock, kHeartbeatInterval);
  }
  if (!store) return;
  try {
    report_progress(*store, record_);
  } catch (const std::exception&) {
    // The progress that was reported last remains.
  }
}

void Heartbeat::beat(Store& store, const HostRecord& record) {
  store.set(record.keys.life(record.own), fmt::to_string(++beats_));
  report_progress(store, record);
  if (!record.members.contains(record.own)) return;
  if (store.find(kRunKey) != record.keys.run()) static_cast<void>(call_for_regroup(record));
  if (std::exchange(spoken_for_, record.own) != record.own) last_reported_ = 0;
  if (const auto host = arrival(store, record); host && call_for_regroup(record)) {
    last_reported_ = *host;
  }
}

void Heartbeat::report_progress(Store& store, const HostRecord& record) {
  const std::int64_t now = seconds_since_1970();
  if (std::exchange(reports_for_, record.own) != record.own) came_ = now;
  HostProgress progress{.came = came_, .reported = now};
  // Relaxed: a number that is shown, and nothing else is read because of it.
  const std::int64_t steps = steps_.load(std::memory_order_relaxed);
  if (steps != kNoSteps) progress.steps = steps;
  store.set(record.keys.progress(record.own), text_of(progress));
}

std::optional<HostNumber> Heartbeat::arrival(Store& store, const HostRecord& record) const {
  const RunKeys& keys = record.keys;
  const Members& members = record.members;
  const auto arrivals = store.find(keys.arrivals());
  if (!arrivals) return std::nullopt;
  const HostNumber last = parse_whole(*arrivals, 0, kMostNumbers);
  for (HostNumber host = std::max(members.first_open, last_reported_ + 1); host <= last; ++host) {
    if (members.contains(host) || members.out.contains(host)) continue;
    // The host may not have introduced itself yet.
    if (!store.find(keys.proof(host)) || store.find(keys.refusal(host))) continue;
    if (store.find(keys.life(host)) != kLeft) return host;
  }
  return std::nullopt;
}

}  // namespace rubato::hosts_detail
