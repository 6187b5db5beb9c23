#include "presence.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "hosts/run_status/greeting.hpp"
#include "hosts/run_status/liveness.hpp"

namespace rubato::c10d_hosts_detail {

namespace {

// The largest number that any host is known to have: later hosts have to get larger ones.
HostNumber last_known(const Papers& papers) {
  HostNumber last = std::max(papers.own, papers.members.first_open - 1);
  for (const Member& member : papers.members.hosts) last = std::max(last, member.host);
  for (const auto* const numbers : {&papers.members.out, &papers.members.passed}) {
    if (!numbers->empty()) last = std::max(last, *numbers->rbegin());
  }
  return last;
}

// Puts the papers into a store that was started again. Returns false if the run has continued
// without this host.
bool restore(Store& store, const Papers& papers) {
  const RunKeys& keys = papers.keys;
  const std::int64_t generation = papers.members.generation;
  if (!store.put(keys.turn(generation), papers.members_text)) return false;
  static_cast<void>(store.put(keys.arrivals(), fmt::to_string(last_known(papers))));
  store.set(keys.process(papers.own), papers.process);
  store.set(keys.greeting(papers.own), papers.greeting);
  store.set(keys.proof(papers.own), papers.proof);
  static_cast<void>(store.put(keys.life(papers.own), "0"));
  const auto newest = store.find(keys.newest());
  if (!newest || parse_whole(*newest, 1, kMostNumbers) < generation) {
    store.set(keys.newest(), fmt::to_string(generation));
  }
  if (!papers.folder.empty()) store.set(keys.writer(), writer_text(papers));
  // The run's key comes last: a host that finds it finds all the rest.
  store.set(kRunKey, keys.run());
  return true;
}

}  // namespace

std::string writer_text(const Papers& papers) {
  return fmt::format("{}\n{}", papers.own, papers.folder);
}

Entry enter(Store& store, std::string& store_name, const Papers& papers) {
  static_cast<void>(store.put(kStoreKey, greeting_from_here().nonce));
  const std::string found = store.find(kStoreKey).value_or("");
  const bool is_new = std::exchange(store_name, found) != found;
  if (papers.members.generation == 0) return is_new ? Entry::without_place : Entry::known;
  if (is_new) return restore(store, papers) ? Entry::restored : Entry::displaced;
  return store.find(kRunKey) == papers.keys.run() ? Entry::known : Entry::displaced;
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
  if (seen.is_gone || now - seen.last_sign >= kSilence) return Life::gone;
  return process == ProcessState::running || seen.has_moved ? Life::alive : Life::unknown;
}

milliseconds Watch::looked_for(HostNumber host) {
  return std::chrono::floor<milliseconds>(Clock::now() - seen_of(host).first_look);
}

Beacon::Beacon(Open open, std::string store_name)
    : open_(std::move(open)), store_name_(std::move(store_name)), thread_([this] { run(); }) {}

Beacon::~Beacon() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Beacon::set(const Papers& papers) {
  {
    const std::lock_guard lock(mutex_);
    const bool is_same =
        papers_.own == papers.own && papers_.members.generation == papers.members.generation;
    calls_for_regroup_ = calls_for_regroup_ && is_same;
    papers_ = papers;
  }
  changed_.notify_all();
}

bool Beacon::calls_for_regroup() const {
  const std::lock_guard lock(mutex_);
  return calls_for_regroup_;
}

Papers Beacon::papers() const {
  const std::lock_guard lock(mutex_);
  return papers_;
}

bool Beacon::call_for_regroup(const Papers& papers) {
  const std::lock_guard lock(mutex_);
  const bool is_current =
      papers_.own == papers.own && papers_.members.generation == papers.members.generation;
  calls_for_regroup_ = calls_for_regroup_ || is_current;
  return is_current;
}

void Beacon::run() {
  std::unique_ptr<Store> store;
  std::unique_lock lock(mutex_);
  while (!ends_) {
    if (papers_.own != 0) {
      lock.unlock();
      try {
        const Papers papers = this->papers();
        const bool is_new = store == nullptr;
        if (is_new) store = open_();
        if (is_new && enter(*store, store_name_, papers) == Entry::displaced) {
          static_cast<void>(call_for_regroup(papers));
        }
        beat(*store, papers);
      } catch (const std::exception&) {
        // The next beat opens a new connection.
        store.reset();
      }
      lock.lock();
    }
    if (!ends_) changed_.wait_for(lock, kBeat);
  }
  if (!store) return;
  try {
    tell_progress(*store, papers_);
  } catch (const std::exception&) {
    // The progress that was told last remains.
  }
}

void Beacon::beat(Store& store, const Papers& papers) {
  store.set(papers.keys.life(papers.own), fmt::to_string(++beats_));
  tell_progress(store, papers);
  if (!papers.members.contains(papers.own)) return;
  if (store.find(kRunKey) != papers.keys.run()) static_cast<void>(call_for_regroup(papers));
  if (std::exchange(spoken_for_, papers.own) != papers.own) last_told_ = 0;
  if (const auto host = arrival(store, papers); host && call_for_regroup(papers)) {
    last_told_ = *host;
  }
}

void Beacon::tell_progress(Store& store, const Papers& papers) {
  const std::int64_t now = seconds_since_1970();
  if (std::exchange(tells_of_, papers.own) != papers.own) came_ = now;
  HostProgress progress{.came = came_, .told = now};
  // Relaxed: a number that is shown, and nothing else is read because of it.
  const std::int64_t steps = steps_.load(std::memory_order_relaxed);
  if (steps != kNoSteps) progress.steps = steps;
  store.set(papers.keys.progress(papers.own), text_of(progress));
}

std::optional<HostNumber> Beacon::arrival(Store& store, const Papers& papers) const {
  const RunKeys& keys = papers.keys;
  const Members& members = papers.members;
  const auto arrivals = store.find(keys.arrivals());
  if (!arrivals) return std::nullopt;
  const HostNumber last = parse_whole(*arrivals, 0, kMostNumbers);
  for (HostNumber host = std::max(members.first_open, last_told_ + 1); host <= last; ++host) {
    if (members.contains(host) || members.out.contains(host)) continue;
    // The host may not have introduced itself yet.
    if (!store.find(keys.proof(host)) || store.find(keys.refusal(host))) continue;
    if (store.find(keys.life(host)) != kLeft) return host;
  }
  return std::nullopt;
}

}  // namespace rubato::c10d_hosts_detail
