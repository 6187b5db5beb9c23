#include "papers.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/parse.hpp>

#include "hosts/run_status/greeting.hpp"

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

}  // namespace rubato::c10d_hosts_detail
