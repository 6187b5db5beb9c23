#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "runs/lab/conditions.hpp"

namespace rubato::lab {

/// What a peer is told: `<program> FLOATS SECONDS RANKS ARRIVAL CACHE`.
struct PeerTask {
  std::size_t size = 0;
  double seconds = 0;
  int ranks = 1;
  Arrival arrival = Arrival::simultaneous;
  Cache cache = Cache::hot;
};

inline PeerTask peer_task(int argc, char** argv) {
  constexpr int kArguments = 5;
  try {
    if (argc != 1 + kArguments) throw Error("usage: FLOATS SECONDS RANKS ARRIVAL CACHE");
    return {.size = std::strtoull(argv[1], nullptr, 10),
            .seconds = std::strtod(argv[2], nullptr),
            .ranks = std::atoi(argv[3]),
            .arrival = parse_choice("arrival", argv[4], kArrivals),
            .cache = parse_choice("cache", argv[5], kCaches)};
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    std::exit(2);
  }
}

/// What each rank writes to make the caches cold: its own share, so that all memory that all ranks
/// have at once stays moderate, and enough for a core's own caches.
[[nodiscard]] inline std::size_t flushed_bytes(int ranks) {
  constexpr std::size_t kLeast = std::size_t{16} << 20;
  return std::max(kLeast, Flusher::kBytes / static_cast<std::size_t>(ranks));
}

/// The runs of a peer. The first connects the ranks, the second says how long the task takes, and
/// so how long the last rank is waited for; both are simultaneous, and none of them counts.
class PeerRuns {
 public:
  explicit PeerRuns(const PeerTask& task)
      : task_(task), arrivals_(arrivals_of(Arrival::simultaneous, task.ranks, 0)) {}

  [[nodiscard]] bool more() const {
    return has_another_run(seconds_.size(), spent_, task_.seconds);
  }
  /// Of the next run.
  [[nodiscard]] const Arrivals& arrivals() const { return arrivals_; }

  /// Of a run: seconds from the start to the end of the last rank.
  void add(double seconds) {
    constexpr int kWarmUps = 2;
    if (runs_ < kWarmUps) {
      if (++runs_ < kWarmUps) return;
      arrivals_ = arrivals_of(task_.arrival, task_.ranks, wait_for_last(seconds));
      return;
    }
    spent_ += seconds;
    seconds_.push_back(seconds - arrivals_.back());
  }

  /// From the last arrival on.
  [[nodiscard]] const std::vector<double>& seconds() const { return seconds_; }

 private:
  PeerTask task_;
  Arrivals arrivals_;
  int runs_ = 0;
  double spent_ = 0;
  std::vector<double> seconds_;
};

/// What a peer answers: the seconds of each run, a line each, and a last line "end".
inline void print_timings(const std::vector<double>& seconds) {
  for (const double run : seconds) std::printf("%.9g\n", run);
  std::printf("end\n");
}

}  // namespace rubato::lab
