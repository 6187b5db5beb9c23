#include "beacon.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "hosts/run_status/host_progress.hpp"
#include "watch.hpp"

namespace rubato::c10d_hosts_detail {

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
