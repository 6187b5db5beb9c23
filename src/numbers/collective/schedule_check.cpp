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

// The ranks whose contributions are in a cut of a rank, as a set of bits.
class Contributions {
 public:
  Contributions(Rank ranks, std::size_t cuts)
      : words_((static_cast<std::size_t>(ranks) + 63) / 64),
        cuts_(cuts),
        bits_(static_cast<std::size_t>(ranks) * cuts * words_, 0) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      for (std::size_t cut = 0; cut < cuts; ++cut) {
        at(rank, cut)[static_cast<std::size_t>(rank) / 64] = std::uint64_t{1} << rank % 64;
      }
    }
  }

  [[nodiscard]] std::uint64_t* at(Rank rank, std::size_t cut) {
    return bits_.data() + (static_cast<std::size_t>(rank) * cuts_ + cut) * words_;
  }
  [[nodiscard]] std::size_t words() const { return words_; }
  [[nodiscard]] bool complete(Rank rank, std::size_t cut, Rank ranks) {
    for (Rank other = 0; other < ranks; ++other) {
      if ((at(rank, cut)[static_cast<std::size_t>(other) / 64] >> other % 64 & 1U) == 0)
        return false;
    }
    return true;
  }

 private:
  std::size_t words_;
  std::size_t cuts_;
  std::vector<std::uint64_t> bits_;
};

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

class Checker {
 public:
  explicit Checker(const Schedule& schedule)
      : schedule_(schedule), cuts_(schedule), state_(schedule.ranks, cuts_.count()) {}

  std::string fault() {
    for (std::size_t i = 0; i < schedule_.phases.size(); ++i) {
      if (std::string fault = apply(schedule_.phases[i]); !fault.empty()) {
        return fmt::format("phase {}: {}", i, fault);
      }
    }
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
      for (std::size_t cut = 0; schedule_.length > 0 && cut < cuts_.count(); ++cut) {
        if (!state_.complete(rank, cut, schedule_.ranks)) {
          return fmt::format("in the end rank {} lacks a contribution", rank);
        }
      }
    }
    return {};
  }

 private:
  std::string apply(const TransferPhase& phase) {
    // The values sent are those from before anything arrives.
    std::vector<std::uint64_t> sent;
    for (const Transfer& transfer : phase) {
      for (std::size_t cut = cuts_.at(transfer.begin); cut < cuts_.at(transfer.end); ++cut) {
        const std::uint64_t* bits = state_.at(transfer.from, cut);
        sent.insert(sent.end(), bits, bits + state_.words());
      }
    }
    std::vector<std::pair<Rank, std::size_t>> written;
    const std::uint64_t* arriving = sent.data();
    for (const Transfer& transfer : phase) {
      for (std::size_t cut = cuts_.at(transfer.begin); cut < cuts_.at(transfer.end); ++cut) {
        written.emplace_back(transfer.to, cut);
        std::uint64_t* bits = state_.at(transfer.to, cut);
        for (std::size_t word = 0; word < state_.words(); ++word, ++arriving) {
          if (transfer.kind == TransferKind::copy) {
            bits[word] = *arriving;
          } else if ((bits[word] & *arriving) != 0) {
            return fmt::format("the {} brings a contribution that is already there",
                               transfer_text(transfer));
          } else {
            bits[word] |= *arriving;
          }
        }
      }
    }
    std::sort(written.begin(), written.end());
    const auto twice = std::adjacent_find(written.begin(), written.end());
    if (twice == written.end()) return {};
    return fmt::format("rank {} is written to twice at once", twice->first);
  }

  const Schedule& schedule_;
  Cuts cuts_;
  Contributions state_;
};

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
  std::vector<std::int64_t> depth(static_cast<std::size_t>(schedule.ranks) * cuts.count(), 0);
  const auto at = [&](Rank rank, std::size_t cut) -> std::int64_t& {
    return depth[static_cast<std::size_t>(rank) * cuts.count() + cut];
  };
  for (const TransferPhase& phase : schedule.phases) {
    std::vector<std::int64_t> sent;
    for (const Transfer& transfer : phase) {
      for (std::size_t cut = cuts.at(transfer.begin); cut < cuts.at(transfer.end); ++cut) {
        sent.push_back(at(transfer.from, cut));
      }
    }
    auto arriving = sent.begin();
    for (const Transfer& transfer : phase) {
      for (std::size_t cut = cuts.at(transfer.begin); cut < cuts.at(transfer.end); ++cut) {
        std::int64_t& here = at(transfer.to, cut);
        here = transfer.kind == TransferKind::copy ? *arriving : std::max(here, *arriving) + 1;
        ++arriving;
      }
    }
  }
  return depth.empty() ? 0 : *std::max_element(depth.begin(), depth.end());
}

}  // namespace

std::string find_fault(const Schedule& schedule) {
  if (std::string fault = out_of_bounds(schedule); !fault.empty()) return fault;
  return Checker(schedule).fault();
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
