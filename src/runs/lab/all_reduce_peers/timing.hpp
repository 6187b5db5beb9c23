#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "runs/lab/contestants.hpp"

namespace rubato::lab {

/// The command line of a peer: `<program> FLOATS SECONDS RANKS ARRIVAL CACHE`.
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

/// Bytes that each rank writes to make the caches cold: a share of Flusher::kBytes, so that all
/// ranks together need a moderate amount of memory, but enough for a core's own caches.
[[nodiscard]] inline std::size_t flushed_bytes(int ranks) {
  constexpr std::size_t kLeast = std::size_t{16} << 20;
  return std::max(kLeast, Flusher::kBytes / static_cast<std::size_t>(ranks));
}

/// The runs of a peer. The first connects the ranks; the second measures the task, which determines
/// how late the last rank arrives afterwards. Both are simultaneous, and neither counts.
class PeerRuns {
 public:
  explicit PeerRuns(const PeerTask& task)
      : task_(task), arrivals_(arrivals_of(Arrival::simultaneous, task.ranks, 0)) {}

  [[nodiscard]] bool more() const {
    return has_another_run(seconds_.size(), spent_, task_.seconds);
  }
  /// The arrivals of the next run.
  [[nodiscard]] const Arrivals& arrivals() const { return arrivals_; }

  /// Adds a run, which took this many seconds from the start to the end of the last rank.
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

  /// The seconds of each run that counts, from the last arrival on.
  [[nodiscard]] const std::vector<double>& seconds() const { return seconds_; }

 private:
  PeerTask task_;
  Arrivals arrivals_;
  int runs_ = 0;
  double spent_ = 0;
  std::vector<double> seconds_;
};

/// Prints the answer of a peer: the seconds of each run, one a line, and a last line "end".
inline void print_timings(const std::vector<double>& seconds) {
  for (const double run : seconds) std::printf("%.9g\n", run);
  std::printf("end\n");
}

}  // namespace rubato::lab
