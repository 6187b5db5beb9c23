// The combining tree and the free list under plain threads, which ThreadSanitizer sees, with delays
// at random.

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rubato/numbers/sums.hpp>

#include "numbers/collective/combining_tree.hpp"

namespace rubato {
namespace {

constexpr std::int64_t kStressCores = 64;
constexpr std::int64_t kStressLeaves = 100;

// What each step sums: leaf i is worth i + step, so that no two steps have the same sum.
std::int64_t leaf_value(std::int64_t step, std::int64_t leaf) {
  return leaf + step;
}

std::int64_t sum_of_leaves(std::int64_t step, std::int64_t leaves) {
  return leaves * (leaves - 1) / 2 + leaves * step;
}

// A sum in plain memory, and of which leaves.
struct Partial {
  std::int64_t value = 0;
  std::int64_t first = 0;
  std::int64_t leaves = 0;
};

struct Step {
  std::int64_t leaves = 1;
  std::int64_t cores = 1;
};

class Stress {
 public:
  Stress(int threads, std::int64_t steps, std::uint32_t seed)
      : seed_(seed), sync_(threads, [this] { next_step(); }) {
    std::mt19937 random(seed);
    for (std::int64_t i = 0; i < steps; ++i) {
      const auto leaves = std::uniform_int_distribution<std::int64_t>(1, kStressLeaves)(random);
      const auto cores =
          std::uniform_int_distribution<std::int64_t>(1, std::min(leaves, kStressCores))(random);
      steps_.push_back({leaves, cores});
    }
    next_step();
    std::vector<std::thread> pool;
    pool.reserve(static_cast<std::size_t>(threads));
    for (int t = 0; t < threads; ++t) pool.emplace_back([this, t] { run_thread(t); });
    for (std::thread& thread : pool) thread.join();
  }

  // Steps whose sum was not completed once, or was wrong.
  [[nodiscard]] std::int64_t failures() const { return failures_; }

 private:
  // By one thread, while the others wait.
  void next_step() {
    if (now_ >= 0) {
      if (roots_.load() != 1) ++failures_;
      if (!all_free()) ++failures_;
    }
    ++now_;
    roots_ = 0;
    next_core_ = 0;
    tree_.begin_step();
  }

  bool all_free() {
    std::int64_t free = 0;
    while (free_.pop()) ++free;
    const bool all = free == made_;
    for (std::uint32_t i = 0; i < made_; ++i) free_.push(i);
    return all;
  }

  void run_thread(int thread) {
    std::minstd_rand random(seed_ + static_cast<std::uint32_t>(thread));
    while (now_ < static_cast<std::int64_t>(steps_.size())) {
      const Step& step = steps_[static_cast<std::size_t>(now_)];
      for (std::int64_t core = 0; (core = next_core_++) < step.cores;) {
        run_core(step, core, random);
      }
      sync_.arrive_and_wait();
    }
  }

  void run_core(const Step& step, std::int64_t core, std::minstd_rand& random) {
    const std::int64_t begin = step.leaves * core / step.cores;
    const std::int64_t end = step.leaves * (core + 1) / step.cores;
    const SummationTree shape(step.leaves);
    const auto merge = [&](SumId left, SumId right) {
      Partial& sum = sums_[static_cast<std::size_t>(left)];
      const Partial& added = sums_[static_cast<std::size_t>(right)];
      // In their order.
      if (sum.first + sum.leaves != added.first) ++failures_;
      sum = {sum.value + added.value, sum.first, sum.leaves + added.leaves};
      delay(random);
      free_.push(static_cast<std::uint32_t>(right));
      return left;
    };
    LocalRun run(shape, begin, end);
    for (std::int64_t leaf = begin; leaf < end; ++leaf) {
      const std::uint32_t id = take_buffer();
      delay(random);
      sums_[id] = {leaf_value(now_, leaf), leaf, 1};
      const auto complete = run.offer(SumId{id}, merge);
      if (!complete) continue;
      const auto root = climb(shape, tree_, *complete, merge);
      if (!root) continue;
      const Partial sum = sums_[static_cast<std::size_t>(*root)];
      if (sum.value != sum_of_leaves(now_, step.leaves) || sum.leaves != step.leaves) ++failures_;
      ++roots_;
      free_.push(static_cast<std::uint32_t>(*root));
    }
  }

  std::uint32_t take_buffer() {
    if (const auto id = free_.pop()) return *id;
    return made_++;
  }

  static void delay(std::minstd_rand& random) {
    switch (random() % 64) {
      case 0:
        std::this_thread::yield();
        break;
      case 1:
        for (std::atomic<int> i = 0; i < 100;) ++i;
        break;
      default:
        break;
    }
  }

  std::uint32_t seed_;
  std::vector<Step> steps_;
  CombiningTree<> tree_{kStressLeaves};
  IndexStack<> free_{kStressLeaves};
  std::vector<Partial> sums_ = std::vector<Partial>(kStressLeaves);
  std::atomic<std::uint32_t> made_ = 0;
  std::atomic<std::int64_t> next_core_ = 0;
  std::atomic<std::int64_t> roots_ = 0;
  std::atomic<std::int64_t> failures_ = 0;
  std::int64_t now_ = -1;
  std::barrier<std::function<void()>> sync_;
};

struct Size {
  int threads;
  std::int64_t steps;
};

std::ostream& operator<<(std::ostream& out, const Size& size) {
  return out << size.threads << " threads, " << size.steps << " steps";
}

class CombiningStress : public testing::TestWithParam<Size> {};

TEST_P(CombiningStress, EveryStepCompletesOneSum) {
  EXPECT_EQ(Stress(GetParam().threads, GetParam().steps, 1).failures(), 0);
}

// Fewer steps where threads far outnumber what the machine has: most of the time they wait.
INSTANTIATE_TEST_SUITE_P(Sizes, CombiningStress,
                         testing::Values(Size{1, 10'000}, Size{2, 10'000}, Size{3, 10'000},
                                         Size{8, 1000}, Size{64, 300}),
                         [](const auto& size) {
                           return std::to_string(size.param.threads) + "Threads";
                         });

}  // namespace
}  // namespace rubato
