#include "runs/lab/contestants.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include <gmock/gmock.h>

#include "base/core/seconds.hpp"
#include "runs/lab/measure.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato::lab {
namespace {

constexpr std::size_t kSize = 840;  // a multiple of the cores, so that parts are equal

double arrays(double bytes) {
  return bytes / (kSize * sizeof(float));
}

double arrays_moved(std::string_view strategy, bool fused) {
  return arrays(bytes_moved_by(strategy, {.cores = 8, .size = kSize, .fused = fused}));
}

// N = 8 buffers: 3 (N - 1) for additions two by two, N + 1 and N + 4 for one pass, and what the
// phases of an algorithm add (3) and copy (2). An update of its own costs 5.
TEST(Contestants, CountTheArraysTheyMove) {
  const std::map<std::string_view, double> sum_only{
      {"tree", 21},
      {"chunked-tree", 21},
      {"mutex", 21},
      {"atomic", 21},
      {"tbb", 21},
      {"sharded", 9},
      {"sequential", 7 * 3 + 7 * 2},
      {"ring", 7 * 3 + 7 * 2},
      {"recursive-doubling", 3 * 8 * 3},
      {"halving-doubling", 7 * 3 + 7 * 2},
      {"binary-tree", 7 * 3 + 7 * 2},
      {"double-binary-tree", 7 * 3 + 7 * 2},
      {"two-level", 6 * (3 + 2) + 2 * 3},
      {"two-level:hosts=8,outer=ring", 7 * 3 + 7 * 2}};
  for (const std::string_view name : strategy_names(false)) EXPECT_TRUE(sum_only.contains(name));
  for (const auto& [name, expected] : sum_only) {
    EXPECT_EQ(arrays_moved(name, false), expected) << name;
    EXPECT_EQ(arrays_moved(name, true), name == "sharded" ? 12 : expected + 5) << name;
  }
  EXPECT_EQ(arrays_moved("loop", true), 12);
}

// Buffers of the cores, one for a shared sum, what an exchange sets aside, parameters and velocity.
TEST(Contestants, CountTheArraysTheyKeep) {
  const auto kept = [](std::string_view strategy, bool fused) {
    return arrays(memory_of(strategy, {.cores = 8, .size = kSize, .fused = fused}));
  };
  EXPECT_EQ(kept("tree", false), 8);
  EXPECT_EQ(kept("mutex", false), 9);
  EXPECT_EQ(kept("ring", false), 8) << "a rank sends one chunk and receives another";
  EXPECT_EQ(kept("recursive-doubling", false), 16) << "all exchange all";
  EXPECT_EQ(kept("sharded", true), 10);
  EXPECT_EQ(kept("loop", true), 10);
}

// Whatever the strategy, it is not done before the last buffer is there, wherever that is.
TEST(Contestants, WaitForEveryArrival) {
  constexpr double kLast = 0.01;
  Workers workers(2);
  for (const bool fused : {false, true}) {
    const ReduceTask task{.cores = 4, .size = kSize, .fused = fused};
    for (const std::string_view name : strategy_names(fused)) {
      const auto contestant = make_contestant(name, task, workers);
      for (const std::size_t late : {std::size_t{0}, std::size_t{3}}) {
        Arrivals arrivals(4, 0.0);
        arrivals[late] = kLast;
        contestant->prepare();
        const Stopwatch stopwatch;
        contestant->run(arrivals);
        EXPECT_GE(stopwatch.seconds(), kLast) << name << ", core " << late;
      }
    }
  }
}

// measure() aborts where it does not.
TEST(Contestants, ComeToTheRightSum) {
  for (const int threads : {1, 2}) {
    Workers workers(threads);
    for (const bool fused : {false, true}) {
      const ReduceTask task{.cores = 7, .size = 100'003, .fused = fused};
      for (const std::string_view name : strategy_names(fused)) {
        const auto contestant = make_contestant(name, task, workers);
        // Emptying the caches takes nearly all of the time, and is the same for all.
        const Cache cache = name == "tree" && threads == 2 ? Cache::cold : Cache::hot;
        EXPECT_GE(measure(*contestant, task, {.cache = cache, .seconds = 1e-9}).size(), 2) << name;
      }
    }
  }
}

TEST(Contestants, AreKnownByTheirNames) {
  const auto error = [](std::string_view name, const ReduceTask& task) {
    return error_of([&] { require_strategy(name, task); });
  };
  EXPECT_THAT(error("trees", {}), HasSubstr("did you mean 'tree'?"));
  EXPECT_THAT(error("loop", {.cores = 8}), HasSubstr("unknown strategy 'loop'"));
  EXPECT_THAT(error("loop", {.cores = 9, .fused = true}), HasSubstr("at most 8 cores"));
  EXPECT_THAT(error("two-level:hots=2", {}), HasSubstr("did you mean 'hosts'?"));
  EXPECT_EQ(error("two-level:hosts=2", {}), "no error");
}

}  // namespace
}  // namespace rubato::lab
