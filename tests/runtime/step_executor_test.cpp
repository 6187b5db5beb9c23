#include "loop/runtime/step_executor.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "numbers/collective/summation_tree.hpp"

namespace rubato {
namespace {

using namespace std::chrono_literals;

// Not the start of an epoch: leaf i of the step is not minibatch i.
constexpr std::int64_t kFirstMinibatch = 1000;
constexpr std::int64_t kMostMinibatches = 100;
constexpr std::size_t kValues = 37;
constexpr std::array<std::int64_t, 9> kCoreCounts{1, 2, 3, 5, 8, 13, 24, 64, 1024};
constexpr std::array<std::int64_t, 8> kMinibatchCounts{1, 2, 3, 7, 8, 31, 64, kMostMinibatches};
constexpr std::array<Assignment, 2> kBothAssignments{Assignment::contiguous, Assignment::strided};

StepPlan step_of(std::int64_t minibatches, std::int64_t cores) {
  return {.index = StepIndex{5},
          .batch_size = 4 * minibatches,
          .cores = cores,
          .first_minibatch = MinibatchIndex{kFirstMinibatch},
          .minibatches = minibatches};
}

std::int64_t leaf_of(MinibatchIndex minibatch) {
  return minibatch.value() - kFirstMinibatch;
}

template <class T>
struct Leaf {
  std::vector<T> values;
  double loss = 0;

  friend bool operator==(const Leaf&, const Leaf&) = default;
};

// Values of very different magnitudes, so that every order of summation rounds in its own way.
template <class T>
std::vector<Leaf<T>> random_leaves() {
  std::mt19937 generator(7);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> exponent(-12, 12);
  std::vector<Leaf<T>> leaves(kMostMinibatches);
  for (Leaf<T>& leaf : leaves) {
    leaf.values.resize(kValues);
    for (T& value : leaf.values) {
      value = static_cast<T>(std::ldexp(normal(generator), exponent(generator)));
    }
    leaf.loss = std::ldexp(normal(generator), exponent(generator));
  }
  return leaves;
}

template <class T>
Leaf<T> plus(const Leaf<T>& left, const Leaf<T>& right) {
  Leaf<T> sum = left;
  for (std::size_t i = 0; i < kValues; ++i) sum.values[i] = left.values[i] + right.values[i];
  sum.loss = left.loss + right.loss;
  return sum;
}

// The sum below a node, by the definition: children first, and a node without a sibling as it is.
template <class T>
Leaf<T> sum_below(const SummationTree& tree, TreeNode node, const std::vector<Leaf<T>>& leaves) {
  if (node.level == 0) return leaves[static_cast<std::size_t>(node.index)];
  const TreeNode left{node.level - 1, 2 * node.index};
  const TreeNode right = left.sibling();
  if (!tree.contains(right)) return sum_below(tree, left, leaves);
  return plus(sum_below(tree, left, leaves), sum_below(tree, right, leaves));
}

template <class T>
Leaf<T> reference_sum(std::int64_t minibatches, const std::vector<Leaf<T>>& leaves) {
  const SummationTree tree(minibatches);
  return sum_below(tree, {tree.height(), 0}, leaves);
}

template <class T>
Leaf<T> result_of(const StepSum<T>& sum) {
  return {{sum.values().begin(), sum.values().end()}, sum.scalars().loss};
}

// As who computes several leaves in one pass: their sum in the order of a tree of their own.
template <class T>
typename StepExecutor<T>::Substep adding_several(const std::vector<Leaf<T>>& leaves) {
  return [&leaves](const SubstepTask& task, PartialSum<T>& out) {
    const auto first = leaves.begin() + leaf_of(task.minibatch);
    const Leaf<T> sum = reference_sum(task.count, std::vector<Leaf<T>>(first, first + task.count));
    std::copy(sum.values.begin(), sum.values.end(), out.values.begin());
    out.scalars.loss = sum.loss;
  };
}

// Adds the leaf to what the executor gives, as backward does.
template <class T>
typename StepExecutor<T>::Substep adding(const std::vector<Leaf<T>>& leaves) {
  return [&leaves](const SubstepTask& task, PartialSum<T>& out) {
    const Leaf<T>& leaf = leaves[static_cast<std::size_t>(leaf_of(task.minibatch))];
    for (std::size_t i = 0; i < kValues; ++i) out.values[i] += leaf.values[i];
    out.scalars.loss += leaf.loss;
  };
}

// Every setting that must not matter to a sum.
template <class T, class Action>
void for_each_setting(const Action& action) {
  for (const int threads : {1, 2, 4}) {
    Workers workers(threads);
    // One executor for steps of all sizes, as a trace has them.
    StepExecutor<T> executor(workers, {.values = kValues, .max_leaves = kMostMinibatches});
    for (const std::int64_t minibatches : kMinibatchCounts) {
      for (const std::int64_t cores : kCoreCounts) {
        for (const Assignment assignment : kBothAssignments) {
          SCOPED_TRACE(testing::Message()
                       << threads << " threads, " << minibatches << " minibatches, " << cores
                       << " cores, " << choice_name(kAssignments, assignment));
          action(executor, step_of(minibatches, cores), assignment);
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

template <class T>
class StepExecutorOf : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(StepExecutorOf, Types);

TYPED_TEST(StepExecutorOf, SumsInOneOrderHoweverManyComeAtOnce) {
  using T = TypeParam;
  const auto leaves = random_leaves<T>();
  std::map<std::int64_t, Leaf<T>> expected;
  for (const std::int64_t minibatches : kMinibatchCounts) {
    expected[minibatches] = reference_sum(minibatches, leaves);
  }
  for (const std::int64_t at_once : {1, 2, 3, 8, 1024}) {
    std::atomic<std::int64_t> most = 0;
    for_each_setting<T>(
        [&](StepExecutor<T>& executor, const StepPlan& step, Assignment assignment) {
          const auto sum = executor.run(
              step, assignment,
              [&, add = adding_several(leaves)](const SubstepTask& task, PartialSum<T>& out) {
                std::int64_t before = most;
                while (before < task.count && !most.compare_exchange_weak(before, task.count)) {
                }
                add(task, out);
              },
              at_once);
          EXPECT_EQ(result_of(sum), expected[step.minibatches]);
          EXPECT_EQ(sum.scalars().minibatches, step.minibatches);
        });
    EXPECT_LE(most, at_once);
    EXPECT_GE(2 * most, std::min(at_once, kMostMinibatches)) << "hardly any came together";
  }
}

// Others have each leaf alone.
TEST(StepExecutor, TakesNoSumsOfSeveralForReducersThatAreNoTree) {
  Workers workers(2);
  StepExecutor<float> executor(workers, {.values = kValues, .max_leaves = 16}, "sharded");
  static_cast<void>(executor.run(
      step_of(16, 2), Assignment::contiguous,
      [](const SubstepTask& task, PartialSum<float>&) { EXPECT_EQ(task.count, 1); }, 8));
}

// The values tell orders of summation apart: without this the first test above would show nothing.
TYPED_TEST(StepExecutorOf, IsTestedWithValuesThatTellOrdersApart) {
  using T = TypeParam;
  const auto leaves = random_leaves<T>();
  Leaf<T> running = leaves.front();
  for (std::size_t i = 1; i < leaves.size(); ++i) running = plus(running, leaves[i]);
  EXPECT_NE(running, reference_sum(kMostMinibatches, leaves));
  auto reversed = leaves;
  std::reverse(reversed.begin(), reversed.end());
  EXPECT_NE(reference_sum(kMostMinibatches, reversed), reference_sum(kMostMinibatches, leaves));
}

TEST(StepExecutor, GivesEveryCoreItsShareInAscendingOrder) {
  for_each_setting<float>(
      [](StepExecutor<float>& executor, const StepPlan& step, Assignment assignment) {
        std::mutex mutex;
        std::map<CoreRank, std::vector<MinibatchIndex>> done;
        const auto record = [&](const SubstepTask& task, PartialSum<float>&) {
          const std::lock_guard lock(mutex);
          EXPECT_EQ(task.substep, done[task.core].size());
          done[task.core].push_back(task.minibatch);
        };
        static_cast<void>(executor.run(step, assignment, record));
        std::map<CoreRank, std::vector<MinibatchIndex>> expected;
        for (std::int64_t rank = 0; rank < step.cores; ++rank) {
          const CoreRank core{rank};
          const MinibatchRun share =
              share_of_core(step.first_minibatch, step.minibatches, core, step.cores, assignment);
          // An idle core is not in the map: it does nothing.
          for (std::int64_t i = 0; i < share.count; ++i) expected[core].push_back(share[i]);
        }
        EXPECT_EQ(done, expected);
      });
}

// The tasks as runs, such as 0-3.
std::vector<std::string> tasks_of(std::int64_t minibatches, std::int64_t cores, int threads,
                                  std::int64_t at_once) {
  CoreTasks tasks;
  std::vector<std::string> runs;
  for (const MinibatchRun& run :
       tasks.divide(step_of(minibatches, cores), Assignment::contiguous, threads, at_once)) {
    const std::int64_t first = leaf_of(run.first);
    runs.push_back(std::to_string(first) + "-" + std::to_string(first + run.count - 1));
  }
  return runs;
}

TEST(CoreTasks, AreAsLongAsTheBalanceOfThreadsAllows) {
  using testing::ElementsAre;
  EXPECT_THAT(tasks_of(8, 8, 2, 32), ElementsAre("0-3", "4-7"));
  EXPECT_THAT(tasks_of(8, 8, 1, 32), ElementsAre("0-7"));
  EXPECT_THAT(tasks_of(8, 8, 3, 32), ElementsAre("0-1", "2-3", "4-5", "6-6", "7-7"));
  EXPECT_THAT(tasks_of(10, 10, 2, 32), ElementsAre("0-3", "4-7", "8-8", "9-9"));
  EXPECT_THAT(tasks_of(7, 7, 2, 32), ElementsAre("0-3", "4-6"));
  EXPECT_THAT(tasks_of(2, 2, 2, 32), ElementsAre("0-0", "1-1"));
  EXPECT_THAT(tasks_of(32, 8, 2, 32), ElementsAre("0-7", "8-15", "16-23", "24-31"));
  EXPECT_THAT(tasks_of(64, 4, 2, 32), ElementsAre("0-15", "16-31", "32-47", "48-63"))
      << "a core is longer already";
  EXPECT_THAT(tasks_of(6, 6, 2, 1).size(), 6) << "no pass computes several";
}

// The minibatches of the busiest thread, if a free thread takes the next run.
std::int64_t busiest_of(std::span<const MinibatchRun> runs, int threads) {
  std::vector<std::int64_t> loads(static_cast<std::size_t>(threads));
  for (const MinibatchRun& run : runs) *std::ranges::min_element(loads) += run.count;
  return *std::ranges::max_element(loads);
}

TEST(CoreTasks, AreWholeCoresAndBalancedAsSingleOnes) {
  CoreTasks tasks;
  for (int threads = 1; threads <= 7; ++threads) {
    for (std::int64_t cores = 1; cores <= 26; ++cores) {
      for (std::int64_t minibatches = 1; minibatches <= 90; ++minibatches) {
        for (const Assignment assignment : kBothAssignments) {
          SCOPED_TRACE(testing::Message() << threads << " threads, " << cores << " cores, "
                                          << minibatches << " minibatches");
          const StepPlan step = step_of(minibatches, cores);
          std::vector<MinibatchRun> singles;
          for (CoreRank core; core.value() < busy_cores(minibatches, cores); ++core) {
            singles.push_back(step.share_of(core, assignment));
          }
          for (const std::int64_t at_once : {1, 8, 32, 1024}) {
            const auto runs = tasks.divide(step, assignment, threads, at_once);
            ASSERT_LE(busiest_of(runs, threads), busiest_of(singles, threads));
            auto next = singles.begin();
            for (const MinibatchRun& run : runs) {
              MinibatchRun cores_of_run = *next++;
              ASSERT_LE(run.count, std::max(cores_of_run.count, at_once / 4));
              while (cores_of_run.count < run.count) cores_of_run.count += (next++)->count;
              ASSERT_EQ(run, cores_of_run);
            }
            ASSERT_EQ(next, singles.end());
          }
        }
      }
    }
  }
}

TEST(StepExecutor, SaysWhichCoresAPassSpans) {
  for_each_setting<float>([](StepExecutor<float>& executor, const StepPlan& step,
                             Assignment assignment) {
    std::mutex mutex;
    std::int64_t minibatches = 0;
    const auto check = [&](const SubstepTask& task, PartialSum<float>&) {
      const std::lock_guard lock(mutex);
      minibatches += task.count;
      EXPECT_EQ(step.share_of(task.core, assignment)[task.substep], task.minibatch);
      const MinibatchIndex last{task.minibatch.value() + task.count - 1};
      EXPECT_EQ(task.cores, step.place_of(last, assignment).core.value() - task.core.value() + 1);
      EXPECT_EQ(task.step, &step);
    };
    static_cast<void>(executor.run(step, assignment, check, 32));
    EXPECT_EQ(minibatches, step.minibatches);
  });
}

TEST(StepExecutor, ComputesNeighbouringCoresInOnePass) {
  const auto passes_of = [](int threads, std::int64_t at_once, std::string_view reducer = "tree") {
    Workers workers(threads);
    StepExecutor<float> executor(workers, {.values = 1, .max_leaves = 8}, reducer);
    std::atomic<int> passes = 0;
    const auto count = [&](const SubstepTask&, PartialSum<float>&) { ++passes; };
    static_cast<void>(executor.run(step_of(8, 8), Assignment::contiguous, count, at_once));
    return passes.load();
  };
  EXPECT_EQ(passes_of(1, 32), 1);
  EXPECT_EQ(passes_of(2, 32), 2);
  EXPECT_EQ(passes_of(3, 32), 5);
  EXPECT_EQ(passes_of(2, 1), 8);
  EXPECT_EQ(passes_of(2, 32, "sharded"), 8);
}

TEST(StepExecutor, ClearsWhatASubstepIsGiven) {
  std::atomic<int> failures{0};
  for_each_setting<double>(
      [&](StepExecutor<double>& executor, const StepPlan& step, Assignment assignment) {
        const auto dirty = [&](const SubstepTask&, PartialSum<double>& out) {
          const bool cleared = out.values.size() == kValues && out.scalars.loss == 0 &&
                               std::all_of(out.values.begin(), out.values.end(),
                                           [](double value) { return value == 0; });
          if (!cleared) failures.fetch_add(1);
          std::fill(out.values.begin(), out.values.end(), 3.0);
          out.scalars.loss = 3.0;
        };
        static_cast<void>(executor.run(step, assignment, dirty));
      });
  EXPECT_EQ(failures.load(), 0);
}

TEST(StepExecutor, GivesSubstepsThatRunTogetherDifferentThreads) {
  constexpr int kThreads = 4;
  Workers workers(kThreads);
  StepExecutor<float> executor(workers, {.values = 1, .max_leaves = kMostMinibatches});
  std::array<std::atomic<bool>, kThreads> inside{};
  std::atomic<int> failures{0};
  const auto substep = [&](const SubstepTask& task, PartialSum<float>&) {
    if (task.thread < 0 || task.thread >= kThreads ||
        inside[static_cast<std::size_t>(task.thread)].exchange(true)) {
      failures.fetch_add(1);
      return;
    }
    std::this_thread::sleep_for(100us);
    inside[static_cast<std::size_t>(task.thread)].store(false);
  };
  static_cast<void>(executor.run(step_of(100, 64), Assignment::contiguous, substep));
  EXPECT_EQ(failures.load(), 0);
}

struct SubstepFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

TEST(StepExecutor, ThrowsASubstepsExceptionAndIsAsItWasBefore) {
  const auto leaves = random_leaves<double>();
  for (const int threads : {1, 2, 4}) {
    Workers workers(threads);
    StepExecutor<double> executor(workers, {.values = kValues, .max_leaves = kMostMinibatches});
    const StepPlan step = step_of(kMostMinibatches, 13);
    const Leaf<double> expected = reference_sum(step.minibatches, leaves);
    for (const Assignment assignment : kBothAssignments) {
      for (std::int64_t failing = 0; failing < step.minibatches; ++failing) {
        const auto add = adding(leaves);
        try {
          static_cast<void>(
              executor.run(step, assignment, [&](const SubstepTask& task, PartialSum<double>& out) {
                if (leaf_of(task.minibatch) == failing) throw SubstepFailure("as asked");
                add(task, out);
              }));
          FAIL() << "nothing thrown";
        } catch (const SubstepFailure& error) {
          EXPECT_STREQ(error.what(), "as asked");
        }
        // Neither a sum left in the tree nor a lost buffer disturbs what comes after.
        ASSERT_EQ(result_of(executor.run(step, assignment, add)), expected)
            << threads << " threads, after a failure in leaf " << failing;
      }
    }
    EXPECT_LE(executor.pool().high_water(), kMostMinibatches);
  }
}

TEST(StepExecutor, GivesTheSumsBufferBackOnce) {
  const auto leaves = random_leaves<float>();
  Workers workers(1);
  // A pool of two buffers. One that is kept aborts a later step; one that is given back twice is
  // both leaves of a later step.
  StepExecutor<float> executor(workers, {.values = kValues, .max_leaves = 2});
  const Leaf<float> expected = reference_sum(2, leaves);
  for (int i = 0; i < 10; ++i) {
    auto sum = executor.run(step_of(2, 8), Assignment::contiguous, adding(leaves));
    const StepSum<float> moved = std::move(sum);
    EXPECT_EQ(result_of(moved), expected) << "step " << i;
  }
  EXPECT_EQ(executor.pool().high_water(), 2);
}

// What is alive at one time are the sums of complete nodes of the tree whose parents are not
// complete. With contiguous shares a thread goes through cores, and so through leaves, upwards; a
// thread without work takes the upper half of what another has left (oneTBB steals the oldest,
// largest piece). So at any time what is still to be done is at most one run of leaves for each of
// the P threads, and what is done at most P + 1 runs. In a tree of height h the first and the last
// of these hold at most h nodes and each of the P - 1 between at most 2 (h - 1), to which come the
// P leaves in work:
//     2 h + 2 (P - 1) (h - 1) + P,   for two threads 4 h,
// however many cores there are. One thread leaves nothing done behind what it has left: h + 1.
// (Strided shares have no such bound: there a core's leaves are far from each other.) How near to
// it a step comes depends on who steals when.
TEST(StepExecutor, HoldsBuffersByThreadsAndLogarithmNotByCores) {
  const auto substep = [](const SubstepTask& task, PartialSum<float>& out) {
    // Uneven, so that threads overtake each other.
    if (task.core.value() % 37 == 5) std::this_thread::sleep_for(200us);
    if (task.core.value() % 11 == 3) std::this_thread::yield();
    out.scalars.loss = 1;
  };
  for (const std::int64_t minibatches : {1000, 1024, 3000}) {
    const int height = SummationTree(minibatches).height();
    for (const int threads : {1, 2, 5}) {
      Workers workers(threads);
      StepExecutor<float> executor(workers, {.values = 1, .max_leaves = minibatches});
      for (int repeat = 0; repeat < 3; ++repeat) {
        const auto sum = executor.run(step_of(minibatches, 1024), Assignment::contiguous, substep);
        ASSERT_EQ(sum.scalars().loss, static_cast<double>(minibatches));
      }
      EXPECT_LE(executor.pool().high_water(),
                threads == 1 ? height + 1 : 2 * height + 2 * (threads - 1) * (height - 1) + threads)
          << minibatches << " minibatches, " << threads << " threads";
    }
  }
}

TEST(StepExecutor, CountsTheTimeOfTheSubstepsOfEachStepAnew) {
  Workers workers(2);
  StepExecutor<float> executor(workers, {.values = 1, .max_leaves = 8});
  const auto seconds_of_step_with = [&executor](std::chrono::milliseconds work) {
    const auto substep = [work](const SubstepTask&, PartialSum<float>&) {
      std::this_thread::sleep_for(work);
    };
    return executor.run(step_of(8, 4), Assignment::contiguous, substep).seconds();
  };
  const ExecutorSeconds slow = seconds_of_step_with(10ms);
  EXPECT_GE(slow.compute, 8 * 0.010) << "of all threads together";
  // A step may be held up by what else the machine does; not each of so many.
  const auto one_of_many = [&](const auto& is_as_expected) {
    for (int i = 0; i < 100; ++i) {
      if (is_as_expected()) return true;
    }
    return false;
  };
  EXPECT_TRUE(one_of_many([&] {
    const ExecutorSeconds seconds = seconds_of_step_with(10ms);
    return seconds.reduce >= 0 && seconds.reduce < 8 * 0.010;
  })) << "the work of the substeps is none of the reduction's";
  EXPECT_TRUE(one_of_many([&] { return seconds_of_step_with(0ms).compute < 8 * 0.010; }));
}

// Sums nothing, and takes its time to finish.
class SlowReducer final : public Reducer<float> {
 public:
  SlowReducer() : Reducer<float>({.values = 1, .max_leaves = 2}) {}
  void begin_step(std::int64_t, std::int64_t) override {}
  void reduce_core(std::int64_t, const LeafShare& share, const NextLeaf& next) override {
    leaf_ = next(share[0]);
  }
  PartialSum<float>* finish_step() override {
    std::this_thread::sleep_for(20ms);
    return leaf_;
  }

 private:
  PartialSum<float>* leaf_ = nullptr;
};

// While the step is finished no thread can do anything else: it is the time of all of them.
TEST(StepExecutor, CountsTheEndOfAStepForEveryThread) {
  Workers workers(3);
  StepExecutor<float> executor(workers, std::make_unique<SlowReducer>());
  const auto sum = executor.run(step_of(1, 1), Assignment::contiguous,
                                [](const SubstepTask&, PartialSum<float>&) {});
  EXPECT_GE(sum.seconds().reduce, 3 * 0.020);
}

}  // namespace
}  // namespace rubato
