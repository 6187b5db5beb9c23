// algorithms.cpp has the first half of each algorithm, a Reduction; make_all_reduce() appends the
// second half, its mirror image. A two-level schedule runs the inner reduction on all hosts at
// once, all-reduces between the hosts what each core then holds (held_after()), and mirrors the
// inner reduction; ranks that do not fill the grid are folded into others around all of it.
// up_a_tree() is greedy: in each phase a parent receives from one child that has the values of all
// its own children. Nothing here moves a number: ScheduleExecutor executes schedules, and
// schedule_check.cpp proves them and counts their cost.

#include "schedule.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>

#include "base/core/check.hpp"

namespace rubato {

namespace algorithms {

void put(TransferPhase& phase, const Transfer& transfer) {
  if (transfer.size() > 0) phase.push_back(transfer);
}

TransferPhase mirror_of(const TransferPhase& phase) {
  TransferPhase mirror;
  mirror.reserve(phase.size());
  for (const Transfer& transfer : phase) {
    mirror.push_back({.from = transfer.to,
                      .to = transfer.from,
                      .begin = transfer.begin,
                      .end = transfer.end,
                      .kind = TransferKind::copy});
  }
  return mirror;
}

std::vector<TransferPhase> up_a_tree(const std::vector<Rank>& parent, std::int64_t begin,
                                     std::int64_t end) {
  // The number of children that have not sent yet.
  std::vector<Rank> missing(parent.size(), 0);
  for (const Rank up : parent) {
    if (up >= 0) ++missing[static_cast<std::size_t>(up)];
  }
  std::vector<bool> sent(parent.size(), false);
  std::vector<TransferPhase> phases;
  for (std::size_t left = parent.size() - 1; left > 0;) {
    TransferPhase phase;
    std::vector<Rank> receivers;
    for (std::size_t rank = 0; rank < parent.size(); ++rank) {
      const Rank up = parent[rank];
      if (up < 0 || sent[rank] || missing[rank] > 0) continue;
      if (std::find(receivers.begin(), receivers.end(), up) != receivers.end()) continue;
      receivers.push_back(up);
      sent[rank] = true;
      put(phase, {.from = static_cast<Rank>(rank), .to = up, .begin = begin, .end = end});
    }
    // Values that arrived in this phase may be sent on in the next.
    for (const Rank up : receivers) --missing[static_cast<std::size_t>(up)];
    left -= receivers.size();
    phases.push_back(std::move(phase));
  }
  return phases;
}

}  // namespace algorithms

namespace {

using algorithms::Reduction;

struct AlgorithmRow {
  std::string_view name;
  std::string_view help;
  // Null for two-level, which combines two of the others.
  Reduction (*reduce)(Rank ranks, std::int64_t length) = nullptr;
};

constexpr std::array<AlgorithmRow, 7> kAlgorithms{{
    {"sequential", "all to rank 0, one after the other, and out again", algorithms::sequential},
    {"ring", "reduce-scatter and all-gather around a ring (Patarasuk and Yuan 2009)",
     algorithms::ring},
    {"recursive-doubling", "whole arrays exchanged with the rank at distance 1, 2, 4, ...",
     algorithms::recursive_doubling},
    {"halving-doubling",
     "halves exchanged at distance n/2, n/4, ..., and all-gather backwards (Rabenseifner)",
     algorithms::halving_doubling},
    {"binary-tree", "up a binary tree, and down again", algorithms::binary_tree},
    {"double-binary-tree",
     "half of the array up and down each of two binary trees (Sanders, Speck and Traeff 2009)",
     algorithms::double_binary_tree},
    {"two-level",
     "inner within hosts, outer between them; by default the hosts and their cores are as near "
     "to a square as can be"},
}};

constexpr auto kNames = [] {
  std::array<std::string_view, kAlgorithms.size()> names;
  for (std::size_t i = 0; i < kAlgorithms.size(); ++i) names[i] = kAlgorithms[i].name;
  return names;
}();
// The algorithms that two-level can combine: all except the last.
constexpr std::span<const std::string_view> kFlatNames(kNames.data(), kAlgorithms.size() - 1);
static_assert(kAlgorithms.back().reduce == nullptr);

constexpr Rank kMostRanks = 1 << 20;

// The number of hosts that makes the grid of `ranks` as square as possible.
Rank squarest_hosts(Rank ranks) {
  Rank hosts = 1;
  for (Rank divisor = 1; divisor <= ranks / divisor; ++divisor) {
    if (ranks % divisor == 0) hosts = divisor;
  }
  return hosts;
}

// The reduction of a flat algorithm.
Reduction reduction_of(std::string_view name, Rank ranks, std::int64_t length) {
  RUBATO_CHECK(ranks >= 1 && length >= 0, "an all-reduce has a rank at least");
  const AlgorithmRow& algorithm = find_row("algorithm", name, kAlgorithms);
  if (algorithm.reduce != nullptr) return algorithm.reduce(ranks, length);
  throw Error(unknown_name_message("algorithm of a level", name, kFlatNames));
}

void append_mirror(std::vector<TransferPhase>& phases, const std::vector<TransferPhase>& of) {
  std::transform(of.rbegin(), of.rend(), std::back_inserter(phases), algorithms::mirror_of);
}

void drop_empty(std::vector<TransferPhase>& phases) {
  phases.erase(std::remove_if(phases.begin(), phases.end(),
                              [](const TransferPhase& phase) { return phase.empty(); }),
               phases.end());
}

// The ranges that each rank has fully reduced after a reduction, in ascending order.
struct Range {
  std::int64_t begin;
  std::int64_t end;
};
std::vector<std::vector<Range>> held_after(const Reduction& reduction, Rank ranks,
                                           std::int64_t length) {
  std::vector<std::vector<Range>> held(static_cast<std::size_t>(ranks), {{0, length}});
  if (!reduction.mirrored) return held;
  for (const TransferPhase& phase : reduction.phases) {
    for (const Transfer& gone : phase) {
      std::vector<Range> rest;
      for (const Range& range : held[static_cast<std::size_t>(gone.from)]) {
        const Range before{range.begin, std::min(range.end, gone.begin)};
        const Range after{std::max(range.begin, gone.end), range.end};
        if (before.begin < before.end) rest.push_back(before);
        if (after.begin < after.end) rest.push_back(after);
      }
      held[static_cast<std::size_t>(gone.from)] = rest;
    }
  }
  return held;
}

// Arguments of two-level.
struct TwoLevels {
  // 0 stands for a grid as square as possible.
  Rank hosts = 0;
  std::string inner;
  std::string outer;
};

TwoLevels read_two_levels(Spec& spec) {
  const auto hosts = spec.whole("hosts", Unset{"near a square"}, 1, kMostRanks);
  std::string inner = spec.one_of("inner", "ring", kFlatNames);
  std::string outer = spec.one_of("outer", "recursive-doubling", kFlatNames);
  return {.hosts = static_cast<Rank>(hosts.value_or(0)),
          .inner = std::move(inner),
          .outer = std::move(outer)};
}

// Ranks left over by hosts of equal size are folded: the i-th of them into the first core of host
// i.
Schedule two_level_schedule(const TwoLevels& levels, Rank ranks, std::int64_t length) {
  const Rank hosts = levels.hosts == 0 ? squarest_hosts(ranks) : std::min(levels.hosts, ranks);
  const Rank cores = ranks / hosts;
  Schedule schedule = make_two_level_schedule(levels.inner, levels.outer, hosts, cores, length);
  const Rank whole = hosts * cores;
  schedule.ranks = ranks;
  if (whole == ranks || length == 0) return schedule;
  TransferPhase fold;
  for (Rank rank = whole; rank < ranks; ++rank) {
    fold.push_back({.from = rank, .to = (rank - whole) * cores, .begin = 0, .end = length});
  }
  schedule.phases.insert(schedule.phases.begin(), fold);
  schedule.phases.push_back(algorithms::mirror_of(fold));
  return schedule;
}

}  // namespace

std::span<const std::string_view> algorithm_names() {
  return kNames;
}

std::vector<Strategy> all_reduce_algorithms() {
  return strategies_of(kAlgorithms, [](const AlgorithmRow& row, Spec& spec) {
    if (row.reduce == nullptr) static_cast<void>(read_two_levels(spec));
  });
}

void require_algorithm(std::string_view algorithm) {
  static_cast<void>(make_all_reduce(algorithm, 1, 0));
}

Schedule make_all_reduce(std::string_view algorithm, Rank ranks, std::int64_t length) {
  Spec spec(algorithm);
  if (find_row("algorithm", spec.name(), kAlgorithms).reduce == nullptr) {
    const TwoLevels levels = read_two_levels(spec);
    spec.finish();
    return two_level_schedule(levels, ranks, length);
  }
  const Reduction reduction = reduction_of(spec.name(), ranks, length);
  spec.finish();
  Schedule schedule{.ranks = ranks, .length = length, .phases = reduction.phases};
  if (reduction.mirrored) append_mirror(schedule.phases, reduction.phases);
  drop_empty(schedule.phases);
  return schedule;
}

Schedule make_two_level_schedule(std::string_view inner, std::string_view outer, Rank hosts,
                                 Rank cores_per_host, std::int64_t length) {
  RUBATO_CHECK(hosts >= 1, "there is a host at least");
  const Reduction within = reduction_of(inner, cores_per_host, length);

  // The inner reduction runs on all hosts at once.
  Reduction all_hosts{.phases = std::vector<TransferPhase>(within.phases.size()),
                      .mirrored = within.mirrored};
  for (std::size_t i = 0; i < within.phases.size(); ++i) {
    for (Rank host = 0; host < hosts; ++host) {
      for (Transfer transfer : within.phases[i]) {
        transfer.from += host * cores_per_host;
        transfer.to += host * cores_per_host;
        all_hosts.phases[i].push_back(transfer);
      }
    }
  }

  // For every core c, the cores c of all hosts all-reduce their parts of the hosts' sums, at once.
  std::vector<TransferPhase> between;
  const auto held = held_after(within, cores_per_host, length);
  for (Rank core = 0; core < cores_per_host; ++core) {
    for (const Range& range : held[static_cast<std::size_t>(core)]) {
      const Schedule across = make_all_reduce(outer, hosts, range.end - range.begin);
      if (between.size() < across.phases.size()) between.resize(across.phases.size());
      for (std::size_t i = 0; i < across.phases.size(); ++i) {
        for (Transfer transfer : across.phases[i]) {
          transfer.from = transfer.from * cores_per_host + core;
          transfer.to = transfer.to * cores_per_host + core;
          transfer.begin += range.begin;
          transfer.end += range.begin;
          between[i].push_back(transfer);
        }
      }
    }
  }

  Schedule schedule{.ranks = hosts * cores_per_host, .length = length, .phases = all_hosts.phases};
  schedule.phases.insert(schedule.phases.end(), between.begin(), between.end());
  if (all_hosts.mirrored) append_mirror(schedule.phases, all_hosts.phases);
  drop_empty(schedule.phases);
  return schedule;
}

}  // namespace rubato
