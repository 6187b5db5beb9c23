#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace rubato::lab {

/// What a peer is told: `<program> SIZE SECONDS [RANKS]`.
struct PeerTask {
  std::size_t size = 0;
  double seconds = 0;
  int ranks = 1;
};

inline PeerTask peer_task(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s FLOATS SECONDS [RANKS]\n", argv[0]);
    std::exit(2);
  }
  return {.size = std::strtoull(argv[1], nullptr, 10),
          .seconds = std::strtod(argv[2], nullptr),
          .ranks = argc > 3 ? std::atoi(argv[3]) : 1};
}

/// What a peer answers on one line: median, min, max seconds and the number of runs.
inline void print_timings(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  std::printf("%.9g %.9g %.9g %zu\n", seconds[seconds.size() / 2], seconds.front(), seconds.back(),
              seconds.size());
}

}  // namespace rubato::lab
