#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/reducer.hpp>
#include <rubato/steps/step_plan.hpp>

#include "numbers/collective/tree_sum.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

constexpr std::array<std::int64_t, 8> kCores{1, 2, 3, 5, 8, 13, 24, 64};
constexpr std::array<std::size_t, 5> kLengths{0, 1, 7, 64, 1'000'003};
constexpr std::array<int, 3> kThreadCounts{1, 2, 4};

// Leaves as flat values; copies are what a reducer works on.
template <class T>
class Leaves {
 public:
  template <class Make>
  Leaves(std::int64_t count, std::size_t length, Make make) : length_(length) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<T> leaf(length);
      for (T& value : leaf) value = static_cast<T>(make());
      values_.push_back(std::move(leaf));
      losses_.push_back(make());
    }
  }

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(values_.size()); }
  [[nodiscard]] std::size_t length() const { return length_; }
  [[nodiscard]] std::span<const T> operator[](std::int64_t i) const {
    return values_[static_cast<std::size_t>(i)];
  }

  [[nodiscard]] double loss(std::int64_t i) const { return losses_[static_cast<std::size_t>(i)]; }

  [[nodiscard]] double tree_order_loss() const {
    std::vector<const double*> pointers;
    for (const double& loss : losses_) pointers.push_back(&loss);
    double sum = 0;
    tree_sum(std::span<const double* const>(pointers), 0, std::span(&sum, 1));
    return sum;
  }

  [[nodiscard]] std::vector<T> tree_order_sum() const {
    std::vector<const T*> pointers;
    for (const auto& leaf : values_) pointers.push_back(leaf.data());
    std::vector<T> sum(length_);
    tree_sum(std::span<const T* const>(pointers), 0, std::span(sum));
    return sum;
  }

 private:
  std::size_t length_;
  std::vector<std::vector<T>> values_;
  std::vector<double> losses_;
};

template <class T>
Leaves<T> random_leaves(std::int64_t count, std::size_t length) {
  std::minstd_rand random(17);
  // Magnitudes far apart: every order rounds in its own way.
  return Leaves<T>(count, length, [&] {
    return (static_cast<double>(random() % 2001) - 1000.5) /
           static_cast<double>(1 + random() % 977);
  });
}

template <class T>
Leaves<T> whole_leaves(std::int64_t count, std::size_t length) {
  std::minstd_rand random(17);
  return Leaves<T>(count, length, [&] { return static_cast<double>(random() % 2001) - 1000; });
}

// What a step came to.
template <class T>
struct Reduced {
  std::vector<T> values{};
  double loss = 0;
  std::vector<double> squares{};
};

// A step of all the leaves.
template <class T>
Reduced<T> reduced(Reducer<T>& reducer, Workers& workers, const Leaves<T>& leaves,
                   std::int64_t cores, Assignment assignment = Assignment::contiguous) {
  const std::int64_t busy = busy_cores(leaves.count(), cores);
  reducer.begin_step(leaves.count(), busy);
  workers.for_each(busy, [&](std::int64_t core, int) {
    const MinibatchRun share =
        share_of_core(MinibatchIndex{0}, leaves.count(), CoreRank{core}, cores, assignment);
    reducer.reduce_core(core, {share.first.value(), share.count, share.stride},
                        [&](std::int64_t leaf) {
                          PartialSum<T>* out = reducer.lease();
                          std::copy_n(leaves[leaf].begin(), leaves.length(), out->values.begin());
                          out->scalars = {.loss = leaves.loss(leaf), .minibatches = 1};
                          return out;
                        });
  });
  const PartialSum<T>* sum = reducer.finish_step();
  EXPECT_EQ(sum->scalars.minibatches, leaves.count());
  Reduced<T> result{.values = {sum->values.begin(), sum->values.end()},
                    .loss = sum->scalars.loss,
                    .squares = {sum->squares.begin(), sum->squares.end()}};
  reducer.end_step();
  return result;
}

// Not ==: it takes 0 for -0.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

std::vector<std::int64_t> uneven_leaf_counts(std::int64_t cores, std::size_t length) {
  // Fewer leaves than cores, one for each, and uneven shares; of long ones few, as they take nearly
  // all of the time.
  if (length > 1000 && cores > 13) return {};
  if (length > 1000) return {cores + cores / 3};
  return {std::max<std::int64_t>(1, cores - 1), cores, 2 * cores + cores / 3, 5 * cores + 1};
}

template <class T>
class ReducerOf : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(ReducerOf, Types);

// Layers of all kinds: none of the values, one, many blocks; and values behind the last one.
NormBlocks blocks_of(std::size_t length) {
  const std::array<std::size_t, 5> ends{length / 9, length / 9, length / 9 + 1, length / 2,
                                        length - length / 8};
  return NormBlocks(ends);
}

// The squared norms of each leaf's blocks, with and without the weights, if there are any, added in
// the order of the tree.
template <class T>
std::vector<double> tree_order_squares(const Leaves<T>& leaves, const NormBlocks& blocks,
                                       std::span<const T> weights) {
  std::vector<std::vector<double>> squares;
  std::vector<const double*> pointers;
  for (std::int64_t i = 0; i < leaves.count(); ++i) {
    std::vector<double> leaf;
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      const auto [begin, end, layer] = blocks[block];
      const std::span<const T> values = leaves[i].subspan(begin, end - begin);
      leaf.push_back(squared_norm(values));
      if (!weights.empty()) {
        leaf.push_back(squared_norm(values, weights.subspan(begin, end - begin)));
      }
    }
    squares.push_back(std::move(leaf));
    pointers.push_back(squares.back().data());
  }
  std::vector<double> sum(blocks.squares());
  tree_sum(std::span<const double* const>(pointers), 0, std::span(sum));
  return sum;
}

TYPED_TEST(ReducerOf, SquaredNormsOfTheLeavesComeAlong) {
  using T = TypeParam;
  for (const std::size_t length : {std::size_t{9}, std::size_t{64}, std::size_t{100'003}}) {
    NormBlocks blocks = blocks_of(length);
    ASSERT_FALSE(blocks.empty());
    std::vector<T> factors(length == 9 ? 0 : length);
    for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = T{1} / static_cast<T>(1 + i % 7);
    const std::span<const T> weights(factors);
    if (!weights.empty()) blocks.weigh_by(weights);
    for (const std::int64_t cores : {1, 3, 8, 24}) {
      for (const std::int64_t count : uneven_leaf_counts(cores, length)) {
        const auto leaves = random_leaves<T>(count, length);
        const std::vector<T> expected_sum = leaves.tree_order_sum();
        const std::vector<double> expected = tree_order_squares(leaves, blocks, weights);
        for (const int threads : kThreadCounts) {
          Workers workers(threads);
          for (const std::string_view name : reducer_names()) {
            SCOPED_TRACE(testing::Message()
                         << name << ": " << count << " leaves of " << length << " on " << cores
                         << " cores, " << threads << " threads");
            const auto reducer = make_reducer<T>(
                name, {.values = length, .max_leaves = count, .norms = blocks}, workers);
            const Reduced<T> sum = reduced(*reducer, workers, leaves, cores);
            if (is_reproducible(name)) {
              ASSERT_TRUE(same_bits(sum.values, expected_sum));
              ASSERT_TRUE(same_bits(sum.squares, expected));
            } else {
              ASSERT_THAT(sum.squares, Pointwise(DoubleNear(1e-6), expected));
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(ReducerOf, ExactOnesHaveTheSameBits) {
  using T = TypeParam;
  for (const std::size_t length : kLengths) {
    for (const std::int64_t cores : kCores) {
      for (const std::int64_t count : uneven_leaf_counts(cores, length)) {
        const auto leaves = random_leaves<T>(count, length);
        const std::vector<T> expected = leaves.tree_order_sum();
        for (const int threads : kThreadCounts) {
          Workers workers(threads);
          for (const std::string_view name : reducer_names()) {
            if (!is_reproducible(name)) continue;
            const auto reducer =
                make_reducer<T>(name, {.values = length, .max_leaves = count}, workers);
            const Reduced<T> sum = reduced(*reducer, workers, leaves, cores);
            ASSERT_TRUE(same_bits(sum.values, expected))
                << name << ": " << count << " leaves of " << length << " on " << cores
                << " cores and " << threads << " threads";
            ASSERT_EQ(sum.loss, leaves.tree_order_loss())
                << name << ": " << count << " losses on " << cores << " cores and " << threads
                << " threads";
          }
        }
      }
    }
  }
}

TYPED_TEST(ReducerOf, AllSumWholeNumbersExactly) {
  using T = TypeParam;
  for (const std::size_t length : {0U, 1U, 7U, 64U, 20'003U}) {
    for (const std::int64_t cores : kCores) {
      const auto leaves = whole_leaves<T>(2 * cores + cores / 3, length);
      const std::vector<T> expected = leaves.tree_order_sum();
      for (const int threads : kThreadCounts) {
        Workers workers(threads);
        for (const std::string_view name : reducer_names()) {
          const auto reducer =
              make_reducer<T>(name, {.values = length, .max_leaves = leaves.count()}, workers);
          for (const auto assignment : {Assignment::contiguous, Assignment::strided}) {
            const Reduced<T> sum = reduced(*reducer, workers, leaves, cores, assignment);
            ASSERT_EQ(sum.values, expected) << name << ": " << length << " values on " << cores
                                            << " cores and " << threads << " threads";
            ASSERT_EQ(sum.loss, leaves.tree_order_loss()) << name << " on " << cores << " cores";
          }
        }
      }
    }
  }
}

// Steps of changing sizes, one after the other, some given up.
TYPED_TEST(ReducerOf, GoesOnAfterAStepThatWasGivenUp) {
  using T = TypeParam;
  constexpr std::size_t kLength = 40'000;
  for (const std::string_view name : reducer_names()) {
    Workers workers(2);
    const auto reducer = make_reducer<T>(name, {.values = kLength, .max_leaves = 30}, workers);
    for (std::int64_t count = 30; count > 1; count -= 7) {
      reducer->begin_step(count, count);
      EXPECT_THROW(workers.for_each(count,
                                    [&](std::int64_t core, int) {
                                      reducer->reduce_core(core, {core, 1, 1},
                                                           [&](std::int64_t leaf) {
                                                             if (leaf == count / 2)
                                                               throw std::runtime_error("given up");
                                                             return reducer->lease();
                                                           });
                                    }),
                   std::runtime_error);
      reducer->end_step();
      const auto leaves = whole_leaves<T>(count, kLength);
      ASSERT_EQ(reduced(*reducer, workers, leaves, count).values, leaves.tree_order_sum())
          << name << ", " << count << " leaves";
    }
  }
}

// On one thread nothing depends on who comes first: a step of 32 leaves on 8 cores of four.
TEST(Reducer, HoldsNoMoreBuffersThanItNeeds) {
  constexpr std::int64_t kLeaves = 32;
  constexpr std::int64_t kBusyCores = 8;
  const std::map<std::string_view, std::int64_t> kept{
      {"tree", 6},          // a pending sum on each of five levels, and the leaf
      {"chunked-tree", 6},  // the same
      {"sharded", kLeaves},
  };
  Workers workers(1);
  const auto leaves = whole_leaves<float>(kLeaves, 40'000);
  for (const std::string_view name : reducer_names()) {
    const ReducerSize size{.values = leaves.length(), .max_leaves = kLeaves};
    const auto reducer = make_reducer<float>(name, size, workers);
    for (int step = 0; step < 2; ++step) {
      static_cast<void>(reduced(*reducer, workers, leaves, kBusyCores));
      const auto row = kept.find(name);
      // The algorithms: a sum of each core, and the leaf of the last.
      EXPECT_EQ(reducer->pool().high_water(), row == kept.end() ? kBusyCores + 1 : row->second)
          << name;
      EXPECT_EQ(reducer->pool().high_water(), buffers_of(name, size, 4, kBusyCores, 1)) << name;
    }
  }
}

TEST(Reducer, KeepsABufferMoreForEveryThreadThatHasWork) {
  const ReducerSize size{.values = 1, .max_leaves = 32};
  EXPECT_EQ(buffers_of("tree", size, 4, 8, 3), 5 + 3);
  EXPECT_EQ(buffers_of("tree", size, 4, 8, 100), 5 + 8) << "eight cores keep eight threads busy";
  EXPECT_EQ(buffers_of("auto", size, 4, 8, 3), 5 + 3) << "the tree, for so few values";
  EXPECT_EQ(buffers_of("sharded", size, 4, 8, 3), 32);
  EXPECT_EQ(buffers_of("two-level:hosts=2", size, 4, 8, 3), 9);
  EXPECT_EQ(buffers_of("tree", {.values = 1, .max_leaves = 1}, 4, 8, 3), 1);
}

TEST(Reducer, KeepsTheOthersOrderAwayFromTheExactNames) {
  EXPECT_TRUE(is_reproducible("tree"));
  EXPECT_TRUE(is_reproducible("chunked-tree"));
  EXPECT_TRUE(is_reproducible("sharded"));
  EXPECT_FALSE(is_reproducible("ring"));
  EXPECT_FALSE(is_reproducible("two-level:hosts=2"));
  EXPECT_TRUE(is_reproducible("auto"));
}

TEST(Reducer, IsKnownByItsName) {
  Workers workers(1);
  const auto error = [&](std::string_view name) {
    return error_of(
        [&] { return make_reducer<float>(name, {.values = 1, .max_leaves = 1}, workers); });
  };
  EXPECT_THAT(error("treee"), HasSubstr("did you mean 'tree'?"));
  EXPECT_THAT(error("mine"),
              AllOf(HasSubstr("unknown reducer 'mine'"), HasSubstr("ccepted: auto, tree, ")));
  EXPECT_THAT(error("tree:hosts=2"), HasSubstr("tree takes no arguments"));
  EXPECT_THAT(error("two-level:hots=2"), HasSubstr("did you mean 'hosts'?"));
  EXPECT_EQ(error("auto"), "no error");
  EXPECT_EQ(error("two-level:hosts=2,outer=ring"), "no error");
}

// Whether it is exact is asked of a known one only.
TEST(Reducer, SaysThatAnUnknownOneIsUnknown) {
  EXPECT_THAT(error_of([] { require_reproducible("mine"); }), HasSubstr("unknown reducer 'mine'"));
  EXPECT_THAT(error_of([] { require_reproducible("ring"); }),
              HasSubstr("ring does not give the same bits"));
  EXPECT_EQ(error_of([] { require_reproducible("sharded"); }), "no error");
}

// The cores' number is no multiple of the hosts'.
TEST(Reducer, OfTwoLevelsTakesItsArguments) {
  Workers workers(2);
  const auto leaves = whole_leaves<float>(14, 1000);
  for (const char* name :
       {"two-level:hosts=2", "two-level:hosts=3,inner=halving-doubling,outer=ring"}) {
    const auto reducer = make_reducer<float>(name, {.values = 1000, .max_leaves = 14}, workers);
    for (const std::int64_t cores : {1, 2, 7, 14}) {
      EXPECT_EQ(reduced(*reducer, workers, leaves, cores).values, leaves.tree_order_sum())
          << name << " on " << cores << " cores";
    }
  }
}

// A gibibyte of leaves is the most that is kept at once; less than a mebibyte needs no sharing out.
TEST(Reducer, AutoKeepsAllLeavesOnlyWhereTheyAreFew) {
  constexpr std::size_t kMebi = std::size_t{1} << 20;
  EXPECT_EQ(auto_reducer({.values = kMebi / 4, .max_leaves = 1 << 20}, 4), "tree");
  EXPECT_EQ(auto_reducer({.values = kMebi / 4 + 1, .max_leaves = 8}, 4), "sharded");
  EXPECT_EQ(auto_reducer({.values = kMebi, .max_leaves = 256}, 4), "sharded");
  EXPECT_EQ(auto_reducer({.values = kMebi, .max_leaves = 257}, 4), "chunked-tree");
  EXPECT_EQ(auto_reducer({.values = kMebi, .max_leaves = 256}, 8), "chunked-tree");
  EXPECT_EQ(auto_reducer({.values = kMebi << 9, .max_leaves = 1}, 4), "chunked-tree");
}

TEST(Reducer, AutoIsExact) {
  Workers workers(2);
  for (const std::size_t length : {std::size_t{10}, std::size_t{22'000}, std::size_t{1'000'003}}) {
    const auto leaves = random_leaves<float>(8, length);
    const auto reducer = make_reducer<float>("auto", {.values = length, .max_leaves = 8}, workers);
    EXPECT_TRUE(same_bits(reduced(*reducer, workers, leaves, 8).values, leaves.tree_order_sum()));
  }
}

}  // namespace
}  // namespace rubato
