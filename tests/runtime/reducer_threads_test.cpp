// The lock-free reducers on plain threads, which ThreadSanitizer sees.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rubato/loop/reducer.hpp>

namespace rubato {
namespace {

// Several chunks of the chunked tree.
constexpr std::size_t kLength = 70'000;
constexpr std::int64_t kMostLeaves = 40;

// The leaf holds its number; all values of the sum are the sum of the numbers.
void step_on_threads(Reducer<float>& reducer, int threads, std::int64_t leaves,
                     std::int64_t cores) {
  reducer.begin_step(leaves, cores);
  std::atomic<std::int64_t> next{0};
  std::vector<std::thread> pool;
  pool.reserve(static_cast<std::size_t>(threads));
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      std::minstd_rand random(static_cast<std::uint32_t>(leaves * 64 + t));
      for (std::int64_t core = 0; (core = next++) < cores;) {
        const std::int64_t begin = leaves * core / cores;
        const std::int64_t end = leaves * (core + 1) / cores;
        reducer.reduce_core(core, {begin, end - begin, 1}, [&](std::int64_t leaf) {
          PartialSum<float>* out = reducer.lease();
          std::fill(out->values.begin(), out->values.end(), static_cast<float>(leaf));
          out->scalars.minibatches = 1;
          if (random() % 4 == 0) std::this_thread::yield();
          return out;
        });
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
  const PartialSum<float>* sum = reducer.finish_step();
  const std::int64_t numbers = leaves * (leaves - 1) / 2;
  const auto expected = static_cast<float>(numbers);
  EXPECT_EQ(sum->scalars.minibatches, leaves);
  EXPECT_TRUE(std::all_of(sum->values.begin(), sum->values.end(),
                          [&](float value) { return value == expected; }));
  reducer.end_step();
}

class ReducerThreads : public testing::TestWithParam<std::string> {};

TEST_P(ReducerThreads, SumEveryLeafOnce) {
  Workers none(1);
  const auto reducer =
      make_reducer<float>(GetParam(), {.values = kLength, .max_leaves = kMostLeaves}, none);
  for (std::int64_t leaves = 1; leaves <= kMostLeaves; ++leaves) {
    step_on_threads(*reducer, 4, leaves, leaves);
    step_on_threads(*reducer, 4, leaves, (leaves + 2) / 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Names, ReducerThreads, testing::Values("tree", "chunked-tree"));

}  // namespace
}  // namespace rubato
