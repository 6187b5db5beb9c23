// The lock-free code under a model checker, which runs every interleaving of its threads (or every
// one with few changes of thread) and every value that the memory model allows a load to see.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <streambuf>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <rubato/numbers/sums.hpp>

#include "model_checker.hpp"
#include "numbers/collective/combining_tree.hpp"

// The checker replaces operator new and delete, but not the form of delete that is told a size.
void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}

namespace rubato {
namespace {

using test::CheckedAtomic;
using test::Operation;
using test::PlantedAtomic;
using test::UncountedAtomic;

// Atomics that ask for a weaker order where the code asks for acq_rel, or for the one that is
// named.
template <Operation operation, std::memory_order weaker,
          std::memory_order needed = std::memory_order_acq_rel>
struct Planted {
  template <class T>
  using Atomic = PlantedAtomic<T, operation, needed, weaker>;
};
constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
constexpr std::memory_order kAcquire = std::memory_order_acquire;
constexpr std::memory_order kRelease = std::memory_order_release;

// The leaves of a step, cut into one run for each thread. Set before a check, as the checker makes
// its tests itself.
std::vector<std::int64_t> cuts;

// Each thread offers its run; a sum is the set of the leaves in it, in memory that the checker
// watches.
template <int Threads, template <class> class Atomic, bool Forgetful, rl::test_result_e Expected>
struct TreeCheck
    : rl::test_suite<TreeCheck<Threads, Atomic, Forgetful, Expected>, Threads, Expected> {
  static constexpr std::size_t kMostLeaves = 8;

  void before() {
    tree.emplace(cuts.back());
    // A step that was given up after its first visits.
    tree->begin_step();
    for (std::int64_t i = 0; i < (cuts.back() + 1) / 2; ++i) {
      static_cast<void>(tree->meet({1, i}, SumId{0}));
    }
    tree->begin_step();
    roots($) = 0;
  }

  void thread(unsigned index) {
    const SummationTree shape(cuts.back());
    const auto merge = [this](SumId left, SumId right) {
      rl::var<unsigned>& sum = sums[static_cast<std::size_t>(left)];
      const unsigned added = sums[static_cast<std::size_t>(right)]($);
      RL_ASSERT((sum($) & added) == 0);
      sum($) = Forgetful ? sum($) : sum($) | added;
      return left;
    };
    LocalRun run(shape, cuts[index], cuts[index + 1]);
    for (std::int64_t leaf = cuts[index]; leaf < cuts[index + 1]; ++leaf) {
      sums[static_cast<std::size_t>(leaf)]($) = 1U << leaf;
      const auto complete = run.offer(SumId{static_cast<std::uint32_t>(leaf)}, merge);
      if (!complete) continue;
      const auto root = climb(shape, *tree, *complete, merge);
      if (!root) continue;
      RL_ASSERT(sums[static_cast<std::size_t>(*root)]($) == (1U << cuts.back()) - 1);
      roots($) = roots($) + 1;
    }
  }

  void after() { RL_ASSERT(roots($) == 1); }

  std::optional<CombiningTree<Atomic>> tree;
  std::array<rl::var<unsigned>, kMostLeaves> sums;
  rl::var<int> roots;
};

// Each thread offers its run chunk by chunk; of each chunk of a sum the checker watches what
// leaves are in it. Who disposes of a sum clears it, as whoever leases its buffer next does.
template <int Threads, template <class> class Atomic, rl::test_result_e Expected>
struct ChunkedTreeCheck
    : rl::test_suite<ChunkedTreeCheck<Threads, Atomic, Expected>, Threads, Expected> {
  static constexpr std::size_t kMostLeaves = 4;
  static constexpr std::size_t kChunks = 2;

  void before() {
    tree.emplace(cuts.back(), kChunks);
    tree->begin_step();
    roots($) = 0;
    for (rl::var<int>& times : disposed) times($) = 0;
  }

  void thread(unsigned index) {
    const SummationTree shape(cuts.back());
    const auto add = [this](std::size_t chunk, SumId left, SumId right) {
      rl::var<unsigned>& sum = chunk_of(left, chunk);
      const unsigned added = chunk_of(right, chunk)($);
      RL_ASSERT((sum($) & added) == 0);
      sum($) = sum($) | added;
    };
    const auto dispose = [this](SumId sum) {
      for (std::size_t chunk = 0; chunk < kChunks; ++chunk) chunk_of(sum, chunk)($) = 0;
      rl::var<int>& times = disposed[static_cast<std::size_t>(sum)];
      times($) = times($) + 1;
    };
    LocalRun run(shape, cuts[index], cuts[index + 1]);
    for (std::int64_t leaf = cuts[index]; leaf < cuts[index + 1]; ++leaf) {
      const SumId id{static_cast<std::uint32_t>(leaf)};
      for (std::size_t chunk = 0; chunk < kChunks; ++chunk) chunk_of(id, chunk)($) = 1U << leaf;
      const auto complete = run.offer(id, [&](SumId left, SumId right) {
        for (std::size_t chunk = 0; chunk < kChunks; ++chunk) add(chunk, left, right);
        dispose(right);
        return left;
      });
      if (!complete) continue;
      const auto root = tree->climb(shape, index, *complete, add, dispose);
      if (!root) continue;
      RL_ASSERT(*root == SumId{0});
      roots($) = roots($) + 1;
    }
  }

  void after() {
    RL_ASSERT(roots($) == 1);
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
      RL_ASSERT(chunk_of(SumId{0}, chunk)($) == (1U << cuts.back()) - 1);
    }
    for (std::int64_t leaf = 0; leaf < cuts.back(); ++leaf) {
      RL_ASSERT(disposed[static_cast<std::size_t>(leaf)]($) == (leaf == 0 ? 0 : 1));
    }
  }

  rl::var<unsigned>& chunk_of(SumId sum, std::size_t chunk) {
    return values[static_cast<std::size_t>(sum) * kChunks + chunk];
  }

  std::optional<ChunkedCombiningTree<Atomic>> tree;
  std::array<rl::var<unsigned>, kMostLeaves * kChunks> values;
  std::array<rl::var<int>, kMostLeaves> disposed;
  rl::var<int> roots;
};

// Each thread takes numbers out, as many as there are, and puts them back in that order; who has a
// number is alone with it.
template <int Threads, template <class> class Atomic, rl::test_result_e Expected>
struct StackCheck : rl::test_suite<StackCheck<Threads, Atomic, Expected>, Threads, Expected> {
  static constexpr std::size_t kNumbers = 2;

  void before() {
    stack.emplace(kNumbers);
    for (std::uint32_t i = 0; i < kNumbers; ++i) {
      written[i]($) = 0;
      stack->push(i);
    }
  }

  void thread(unsigned) {
    const auto first = stack->pop();
    const auto second = stack->pop();
    if (first) {
      write(*first);
      stack->push(*first);
    }
    if (second) {
      write(*second);
      stack->push(*second);
    }
  }

  void after() {
    RL_ASSERT(stack->pop() && stack->pop());
    RL_ASSERT(!stack->pop());
  }

  void write(std::uint32_t number) { written[number]($) = written[number]($) + 1; }

  std::optional<IndexStack<Atomic>> stack;
  std::array<rl::var<int>, kNumbers> written;
};

// What the checker prints. A fixed piece of memory: the checker replaces operator new while it
// runs, so that nothing allocated then may be freed later.
class Report final : public std::streambuf {
 public:
  Report() { setp(text_.data(), text_.data() + text_.size()); }
  [[nodiscard]] std::string_view text() const {
    return {pbase(), static_cast<std::size_t>(pptr() - pbase())};
  }

 private:
  std::array<char, 1 << 16> text_{};
};

// Every interleaving with at most `changes` of the running thread; all where it is 0. True when the
// checker found what the check says it must.
template <class Check>
testing::AssertionResult finds_as_expected(unsigned changes) {
  Report report;
  std::ostream output(&report);
  rl::test_params parameters;
  parameters.search_type = changes == 0 ? rl::sched_full : rl::sched_bound;
  parameters.context_bound = changes;
  parameters.output_stream = &output;
  parameters.progress_stream = &output;
  if (rl::simulate<Check>(parameters)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << report.text();
}

template <int Threads>
using CorrectTree = TreeCheck<Threads, CheckedAtomic, false, rl::test_result_success>;

TEST(ModelCheck, EveryInterleavingOfTwoThreadsCompletesEverySumOnce) {
  for (std::int64_t leaves = 2; leaves <= 5; ++leaves) {
    for (std::int64_t cut = 1; cut < leaves; ++cut) {
      cuts = {0, cut, leaves};
      EXPECT_TRUE(finds_as_expected<CorrectTree<2>>(0)) << leaves << " leaves cut at " << cut;
    }
  }
}

TEST(ModelCheck, ThreeThreadsCompleteEverySumOnce) {
  for (std::int64_t leaves = 3; leaves <= 8; ++leaves) {
    for (std::int64_t first = 1; first < leaves - 1; ++first) {
      for (std::int64_t second = first + 1; second < leaves; ++second) {
        cuts = {0, first, second, leaves};
        EXPECT_TRUE(finds_as_expected<CorrectTree<3>>(0))
            << leaves << " leaves cut at " << first << " and " << second;
      }
    }
  }
}

TEST(ModelCheck, FourThreadsWithALeafEachCompleteEverySumOnce) {
  cuts = {0, 1, 2, 3, 4};
  EXPECT_TRUE(finds_as_expected<CorrectTree<4>>(0));
}

// Each order that the code asks for is needed: a weaker one is found.
template <Operation operation, std::memory_order weaker>
testing::AssertionResult finds_race_in_tree() {
  using Faulty = Planted<operation, weaker>;
  cuts = {0, 1, 2};
  return finds_as_expected<TreeCheck<2, Faulty::template Atomic, false, rl::test_result_data_race>>(
      0);
}

TEST(ModelCheck, FindsAWeakerOrderInTheTree) {
  EXPECT_TRUE((finds_race_in_tree<Operation::exchange, kRelaxed>()));
  EXPECT_TRUE((finds_race_in_tree<Operation::exchange, kAcquire>()));
  EXPECT_TRUE((finds_race_in_tree<Operation::exchange, kRelease>()));
}

TEST(ModelCheck, FindsAMergeThatIsMissing) {
  cuts = {0, 1, 2};
  EXPECT_TRUE((
      finds_as_expected<TreeCheck<2, CheckedAtomic, true, rl::test_result_user_assert_failed>>(0)));
}

template <int Threads>
using CorrectChunkedTree = ChunkedTreeCheck<Threads, CheckedAtomic, rl::test_result_success>;

TEST(ModelCheck, EveryInterleavingOfTwoThreadsCompletesEveryChunkOnce) {
  for (std::int64_t leaves = 2; leaves <= 4; ++leaves) {
    for (std::int64_t cut = 1; cut < leaves; ++cut) {
      cuts = {0, cut, leaves};
      EXPECT_TRUE(finds_as_expected<CorrectChunkedTree<2>>(0))
          << leaves << " leaves cut at " << cut;
    }
  }
}

TEST(ModelCheck, ThreeThreadsCompleteEveryChunkOnce) {
  cuts = {0, 1, 2, 3};
  EXPECT_TRUE(finds_as_expected<CorrectChunkedTree<3>>(3));
  cuts = {0, 1, 2, 4};
  EXPECT_TRUE(finds_as_expected<CorrectChunkedTree<3>>(3));
}

template <Operation operation, std::memory_order weaker>
testing::AssertionResult finds_race_in_chunked_tree() {
  using Faulty = Planted<operation, weaker>;
  cuts = {0, 1, 2};
  return finds_as_expected<ChunkedTreeCheck<2, Faulty::template Atomic, rl::test_result_data_race>>(
      0);
}

TEST(ModelCheck, FindsAWeakerOrderInTheChunkedTree) {
  EXPECT_TRUE((finds_race_in_chunked_tree<Operation::fetch_sub, kRelaxed>()));
  EXPECT_TRUE((finds_race_in_chunked_tree<Operation::fetch_sub, kAcquire>()));
  EXPECT_TRUE((finds_race_in_chunked_tree<Operation::fetch_sub, kRelease>()));
  EXPECT_TRUE((finds_race_in_chunked_tree<Operation::exchange, kRelaxed>()));
}

// In how many changes of thread the faults below are found.
constexpr unsigned kStackChanges = 3;

TEST(ModelCheck, AStackGivesANumberToOneThread) {
  EXPECT_TRUE(
      (finds_as_expected<StackCheck<2, CheckedAtomic, rl::test_result_success>>(kStackChanges)));
  EXPECT_TRUE((finds_as_expected<StackCheck<3, CheckedAtomic, rl::test_result_success>>(2)));
}

// Two threads have one number, or a number is lost.
template <template <class> class Atomic, rl::test_result_e Expected>
testing::AssertionResult finds_fault_of_stack() {
  return finds_as_expected<StackCheck<2, Atomic, Expected>>(kStackChanges);
}

TEST(ModelCheck, FindsAWeakerOrderInTheStack) {
  using Push = Planted<Operation::success, kRelaxed, kRelease>;
  using Pop = Planted<Operation::load, kRelaxed, kAcquire>;
  using Retry = Planted<Operation::failure, kRelaxed, kAcquire>;
  EXPECT_TRUE((finds_fault_of_stack<Push::Atomic, rl::test_result_data_race>()));
  EXPECT_TRUE((finds_fault_of_stack<Pop::Atomic, rl::test_result_user_assert_failed>()));
  EXPECT_TRUE((finds_fault_of_stack<Retry::Atomic, rl::test_result_user_assert_failed>()));
}

// Without the count of changes.
TEST(ModelCheck, FindsAStackThatLooksTheSameAgain) {
  EXPECT_TRUE((finds_fault_of_stack<UncountedAtomic, rl::test_result_user_assert_failed>()));
}

}  // namespace
}  // namespace rubato
