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

#include <rubato/collective/combining_tree.hpp>
#include <rubato/collective/index_stack.hpp>

#include "model_checker.hpp"

// The checker replaces operator new and delete, but not the form of delete that is told a size.
void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}

namespace rubato {
namespace {

using test::CheckedAtomic;
using test::RelaxedAtomic;

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

// Each thread takes a number out and puts it back, twice; who has a number is alone with it.
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
    for (int round = 0; round < 2; ++round) {
      const auto number = stack->pop();
      if (!number) continue;
      written[*number]($) = written[*number]($) + 1;
      stack->push(*number);
    }
  }

  void after() {
    RL_ASSERT(stack->pop() && stack->pop());
    RL_ASSERT(!stack->pop());
  }

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

TEST(ModelCheck, FindsAnOrderThatPublishesNothing) {
  cuts = {0, 1, 2};
  EXPECT_TRUE(
      (finds_as_expected<TreeCheck<2, RelaxedAtomic, false, rl::test_result_data_race>>(0)));
}

TEST(ModelCheck, FindsAMergeThatIsMissing) {
  cuts = {0, 1, 2};
  EXPECT_TRUE((
      finds_as_expected<TreeCheck<2, CheckedAtomic, true, rl::test_result_user_assert_failed>>(0)));
}

TEST(ModelCheck, AStackGivesANumberToOneThread) {
  EXPECT_TRUE((finds_as_expected<StackCheck<2, CheckedAtomic, rl::test_result_success>>(3)));
  EXPECT_TRUE((finds_as_expected<StackCheck<3, CheckedAtomic, rl::test_result_success>>(2)));
}

TEST(ModelCheck, FindsAStackThatPublishesNothing) {
  EXPECT_TRUE((finds_as_expected<StackCheck<2, RelaxedAtomic, rl::test_result_data_race>>(4)));
}

}  // namespace
}  // namespace rubato
