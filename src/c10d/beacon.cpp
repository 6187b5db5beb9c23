#include "c10d/beacon.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/core/number.hpp>

#include "c10d/watch.hpp"

namespace rubato::c10d_hosts_detail {

Beacon::Beacon(Open open) : open_(std::move(open)), thread_([this] { run(); }) {}

Beacon::~Beacon() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Beacon::set(HostNumber host, const Members& members) {
  {
    const std::lock_guard lock(mutex_);
    host_ = host;
    members_ = members;
    has_arrivals_ = false;
  }
  changed_.notify_all();
}

bool Beacon::has_arrivals() const {
  const std::lock_guard lock(mutex_);
  return has_arrivals_;
}

void Beacon::run() {
  std::unique_ptr<Store> store;
  std::unique_lock lock(mutex_);
  while (!ends_) {
    if (host_ != 0) {
      lock.unlock();
      try {
        if (store == nullptr) store = open_();
        beat(*store);
      } catch (const std::exception&) {
        // With a new connection, the next time.
        store.reset();
      }
      lock.lock();
    }
    if (!ends_) changed_.wait_for(lock, kBeat);
  }
}

void Beacon::beat(Store& store) {
  Members members;
  HostNumber host = 0;
  {
    const std::lock_guard lock(mutex_);
    host = host_;
    members = members_;
  }
  store.set(life_key(host), fmt::to_string(++beats_));
  if (members.contains(host)) look_for_arrivals(store, members);
}

void Beacon::look_for_arrivals(Store& store, const Members& members) {
  const auto arrivals = store.find(kArrivals);
  if (!arrivals) return;
  const HostNumber last = parse_whole(*arrivals, 0, std::int64_t{1} << 40U);
  for (HostNumber host = std::max(members.first_open, last_told_ + 1); host <= last; ++host) {
    if (members.contains(host)) continue;
    // It may not have introduced itself yet.
    if (!store.find(proof_key(host)) || store.find(refusal_key(host))) continue;
    if (store.find(life_key(host)) == kLeft) continue;
    const std::lock_guard lock(mutex_);
    if (members_.generation != members.generation) return;
    last_told_ = host;
    has_arrivals_ = true;
  }
}

}  // namespace rubato::c10d_hosts_detail
