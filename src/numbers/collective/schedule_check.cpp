// find_fault() executes a schedule on sets instead of numbers: the value of an element is the set
// of ranks whose contributions it has, and an addition of two sets that share a rank is a fault.
// Its work and memory grow with the number of cuts and the square of the number of ranks, but not
// with the length of the arrays. The depth of the sums is found by the same interpreter (Held),
// with counts of additions instead of sets. cost_of() takes the transfers of a phase as
// simultaneous, so the rank that is busy longest gives the duration of the phase.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "base/core/check.hpp"
#include "schedule.hpp"

namespace rubato {

namespace {

// Cuts are the elements between neighbouring bounds of any transfers; all elements of a cut are
// treated alike.
class Cuts {
 public:
  explicit Cuts(const Schedule& schedule) : bounds_{0, schedule.length} {
    for (const TransferPhase& phase : schedule.phases) {
      for (const Transfer& transfer : phase) {
        bounds_.push_back(transfer.begin);
        bounds_.push_back(transfer.end);
      }
    }
    std::sort(bounds_.begin(), bounds_.end());
    bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
  }

  [[nodiscard]] std::size_t count() const { return bounds_.size() - 1; }
  // The index of the cut that begins at `bound`.
  [[nodiscard]] std::size_t at(std::int64_t bound) const {
    return static_cast<std::size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), bound) -
                                    bounds_.begin());
  }

 private:
  std::vector<std::int64_t> bounds_;
};

// A value for each cut of each rank, and what the transfers of a phase make of them.
template <class Value>
class Held {
 public:
  Held(const Schedule& schedule, const Cuts& cuts)
      : cuts_(cuts), values_(static_cast<std::size_t>(schedule.ranks) * cuts.count()) {}

  [[nodiscard]] Value& at(Rank rank, std::size_t cut) {
    return values_[static_cast<std::size_t>(rank) * cuts_.count() + cut];
  }
  [[nodiscard]] const std::vector<Value>& all() const { return values_; }

  // Calls take(transfer, cut, here, arriving) for each cut that arrives. The values sent are those
  // from before anything arrives.
  template <class Take>
  void apply(const TransferPhase& phase, const Take& take) {
    std::vector<Value> sent;
    each_cut(phase, [&](const Transfer& transfer, std::size_t cut) {
      sent.push_back(at(transfer.from, cut));
    });
    auto arriving = sent.begin();
    each_cut(phase, [&](const Transfer& transfer, std::size_t cut) {
      take(transfer, cut, at(transfer.to, cut), *arriving++);
    });
  }

 private:
  template <class Call>
  void each_cut(const TransferPhase& phase, const Call& call) const {
    for (const Transfer& transfer : phase) {
      const std::size_t end = cuts_.at(transfer.end);
      for (std::size_t cut = cuts_.at(transfer.begin); cut < end; ++cut) call(transfer, cut);
    }
  }

  const Cuts& cuts_;
  std::vector<Value> values_;
};

// The ranks whose contributions are in a cut, as bits.
using Contributions = std::vector<std::uint64_t>;

// Adds those that arrive. False if one of them is there already.
bool add(Contributions& here, const Contributions& arriving) {
  for (std::size_t word = 0; word < here.size(); ++word) {
    if ((here[word] & arriving[word]) != 0) return false;
    here[word] |= arriving[word];
  }
  return true;
}

std::string transfer_text(const Transfer& transfer) {
  return fmt::format("{} of [{}, {}) from rank {} to rank {}",
                     transfer.kind == TransferKind::add ? "addition" : "copy", transfer.begin,
                     transfer.end, transfer.from, transfer.to);
}

std::string out_of_bounds(const Schedule& schedule) {
  for (std::size_t i = 0; i < schedule.phases.size(); ++i) {
    for (const Transfer& transfer : schedule.phases[i]) {
      const auto known = [&](Rank rank) { return rank >= 0 && rank < schedule.ranks; };
      if (transfer.from == transfer.to) {
        return fmt::format("phase {}: the {} goes from a rank to itself", i,
                           transfer_text(transfer));
      }
      if (!known(transfer.from) || !known(transfer.to) || transfer.begin < 0 ||
          transfer.begin >= transfer.end || transfer.end > schedule.length) {
        return fmt::format("phase {}: the {} is not within {} ranks and {} elements", i,
                           transfer_text(transfer), schedule.ranks, schedule.length);
      }
    }
  }
  return {};
}

std::string fault_of(const TransferPhase& phase, Held<Contributions>& held) {
  std::string fault;
  std::vector<std::pair<Rank, std::size_t>> written;
  held.apply(phase, [&](const Transfer& transfer, std::size_t cut, Contributions& here,
                        const Contributions& arriving) {
    written.emplace_back(transfer.to, cut);
    if (transfer.kind == TransferKind::copy) {
      here = arriving;
    } else if (!add(here, arriving) && fault.empty()) {
      fault = fmt::format("the {} brings a contribution that is already there",
                          transfer_text(transfer));
    }
  });
  std::sort(written.begin(), written.end());
  const auto twice = std::adjacent_find(written.begin(), written.end());
  if (!fault.empty() || twice == written.end()) return fault;
  return fmt::format("rank {} is written to twice at once", twice->first);
}

double& busy_of(std::vector<double>& busy, Rank rank) {
  return busy[static_cast<std::size_t>(rank)];
}

double phase_seconds(const TransferPhase& phase, Rank ranks, std::int64_t element_bytes,
                     const Network& network) {
  std::vector<double> sends(static_cast<std::size_t>(ranks), 0);
  std::vector<double> receives(static_cast<std::size_t>(ranks), 0);
  for (const Transfer& transfer : phase) {
    const bool same_host =
        transfer.from / network.ranks_per_host == transfer.to / network.ranks_per_host;
    const Network::Link& link = same_host ? network.within_host : network.between_hosts;
    const auto bytes = static_cast<double>(transfer.size() * element_bytes);
    const double seconds = link.latency + bytes * link.per_byte;
    const bool adds = transfer.kind == TransferKind::add;
    busy_of(sends, transfer.from) += seconds;
    busy_of(receives, transfer.to) += seconds + (adds ? bytes * network.add_per_byte : 0);
  }
  return std::max(*std::max_element(sends.begin(), sends.end()),
                  *std::max_element(receives.begin(), receives.end()));
}

std::int64_t depth_of(const Schedule& schedule) {
  const Cuts cuts(schedule);
  Held<std::int64_t> depth(schedule, cuts);
  for (const TransferPhase& phase : schedule.phases) {
    depth.apply(phase, [](const Transfer& transfer, std::size_t /*cut*/, std::int64_t& here,
                          std::int64_t arriving) {
      here = transfer.kind == TransferKind::copy ? arriving : std::max(here, arriving) + 1;
    });
  }
  return depth.all().empty() ? 0 : *std::max_element(depth.all().begin(), depth.all().end());
}

}  // namespace

std::string find_fault(const Schedule& schedule) {
  if (std::string fault = out_of_bounds(schedule); !fault.empty()) return fault;
  const Cuts cuts(schedule);
  Held<Contributions> held(schedule, cuts);
  Contributions complete((static_cast<std::size_t>(schedule.ranks) + 63) / 64, 0);
  for (Rank rank = 0; rank < schedule.ranks; ++rank) {
    Contributions own(complete.size(), 0);
    own[static_cast<std::size_t>(rank) / 64] = std::uint64_t{1} << rank % 64;
    add(complete, own);
    for (std::size_t cut = 0; cut < cuts.count(); ++cut) held.at(rank, cut) = own;
  }
  for (std::size_t i = 0; i < schedule.phases.size(); ++i) {
    if (std::string fault = fault_of(schedule.phases[i], held); !fault.empty()) {
      return fmt::format("phase {}: {}", i, fault);
    }
  }
  const auto lacking =
      std::ranges::find_if(held.all(), [&](const auto& of_cut) { return of_cut != complete; });
  if (lacking == held.all().end()) return {};
  const auto rank = static_cast<std::size_t>(lacking - held.all().begin()) / cuts.count();
  return fmt::format("in the end rank {} lacks a contribution", rank);
}

ScheduleCost cost_of(const Schedule& schedule, std::int64_t element_bytes, const Network& network) {
  RUBATO_CHECK(element_bytes >= 1 && network.ranks_per_host >= 1, "elements and hosts have a size");
  ScheduleCost cost;
  cost.phases = static_cast<std::int64_t>(schedule.phases.size());
  std::vector<std::int64_t> sent(static_cast<std::size_t>(schedule.ranks), 0);
  for (const TransferPhase& phase : schedule.phases) {
    for (const Transfer& transfer : phase) {
      ++cost.messages;
      cost.bytes += transfer.size() * element_bytes;
      sent[static_cast<std::size_t>(transfer.from)] += transfer.size() * element_bytes;
    }
    cost.seconds += phase_seconds(phase, schedule.ranks, element_bytes, network);
  }
  cost.most_bytes_of_a_rank = *std::max_element(sent.begin(), sent.end());
  cost.depth = depth_of(schedule);
  return cost;
}

}  // namespace rubato
