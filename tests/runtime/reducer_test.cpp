#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/collective/tree_sum.hpp>
#include <rubato/plan/assignment.hpp>
#include <rubato/runtime/reducer.hpp>

#include "support/error_of.hpp"

namespace rubato {
namespace {

constexpr std::array<std::int64_t, 8> kCores{1, 2, 3, 5, 8, 13, 24, 64};
constexpr std::array<std::size_t, 5> kLengths{0, 1, 7, 64, 1'000'003};
constexpr std::array<int, 3> kThreads{1, 2, 4};

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
    }
  }

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(values_.size()); }
  [[nodiscard]] std::size_t length() const { return length_; }
  [[nodiscard]] std::span<const T> operator[](std::int64_t i) const {
    return values_[static_cast<std::size_t>(i)];
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

// A step of all the leaves. The leaf's number is its loss.
template <class T>
std::vector<T> reduced(Reducer<T>& reducer, Workers& workers, const Leaves<T>& leaves,
                       std::int64_t cores, Assignment assignment = Assignment::contiguous,
                       std::vector<double>* squares = nullptr) {
  const std::int64_t busy = busy_cores(leaves.count(), cores);
  reducer.begin_step(leaves.count(), busy);
  workers.for_each(busy, [&](std::int64_t core, int) {
    const MinibatchRun share =
        share_of_core(MinibatchIndex{0}, leaves.count(), CoreRank{core}, cores, assignment);
    reducer.reduce_core(core, {share.first.value(), share.count, share.stride},
                        [&](std::int64_t leaf) {
                          PartialSum<T>* out = reducer.lease();
                          std::copy_n(leaves[leaf].begin(), leaves.length(), out->values.begin());
                          out->scalars = {.loss = static_cast<double>(leaf), .minibatches = 1};
                          return out;
                        });
  });
  const PartialSum<T>* sum = reducer.finish_step();
  EXPECT_EQ(sum->scalars.minibatches, leaves.count());
  const std::int64_t loss = leaves.count() * (leaves.count() - 1) / 2;
  EXPECT_EQ(sum->scalars.loss, static_cast<double>(loss));
  std::vector<T> values(sum->values.begin(), sum->values.end());
  if (squares != nullptr) squares->assign(sum->squares.begin(), sum->squares.end());
  reducer.end_step();
  return values;
}

// Not ==: it takes 0 for -0.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

std::vector<std::int64_t> uneven_leaf_counts(std::int64_t cores, std::size_t length) {
  // Fewer leaves than cores, one for each, and uneven shares; a large one only where it is cheap.
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

// The squared norms of each leaf's blocks, added in the order of the tree.
template <class T>
std::vector<double> tree_order_squares(const Leaves<T>& leaves, const NormBlocks& blocks) {
  std::vector<std::vector<double>> squares;
  std::vector<const double*> pointers;
  for (std::int64_t i = 0; i < leaves.count(); ++i) {
    std::vector<double> leaf;
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      const auto [begin, end, layer] = blocks[block];
      leaf.push_back(squared_norm(leaves[i].subspan(begin, end - begin)));
    }
    squares.push_back(std::move(leaf));
    pointers.push_back(squares.back().data());
  }
  std::vector<double> sum(blocks.size());
  tree_sum(std::span<const double* const>(pointers), 0, std::span(sum));
  return sum;
}

TYPED_TEST(ReducerOf, SquaredNormsOfTheLeavesComeAlong) {
  using T = TypeParam;
  for (const std::size_t length : {std::size_t{9}, std::size_t{64}, std::size_t{100'003}}) {
    const NormBlocks blocks = blocks_of(length);
    ASSERT_FALSE(blocks.empty());
    for (const std::int64_t cores : {1, 3, 8, 24}) {
      for (const std::int64_t count : uneven_leaf_counts(cores, length)) {
        const auto leaves = random_leaves<T>(count, length);
        const std::vector<T> expected_sum = leaves.tree_order_sum();
        const std::vector<double> expected = tree_order_squares(leaves, blocks);
        for (const int threads : kThreads) {
          Workers workers(threads);
          for (const std::string_view name : reducer_names()) {
            SCOPED_TRACE(testing::Message()
                         << name << ": " << count << " leaves of " << length << " on " << cores
                         << " cores, " << threads << " threads");
            const auto reducer = make_reducer<T>(
                name, {.values = length, .max_leaves = count, .norms = blocks}, workers);
            std::vector<double> squares;
            const auto sum =
                reduced(*reducer, workers, leaves, cores, Assignment::contiguous, &squares);
            if (is_exact(name)) {
              ASSERT_TRUE(same_bits(sum, expected_sum));
              ASSERT_TRUE(same_bits(squares, expected));
            } else {
              ASSERT_THAT(squares, testing::Pointwise(testing::DoubleNear(1e-6), expected));
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
        for (const int threads : kThreads) {
          Workers workers(threads);
          for (const std::string_view name : reducer_names()) {
            if (!is_exact(name)) continue;
            const auto reducer =
                make_reducer<T>(name, {.values = length, .max_leaves = count}, workers);
            ASSERT_TRUE(same_bits(reduced(*reducer, workers, leaves, cores), expected))
                << name << ": " << count << " leaves of " << length << " on " << cores
                << " cores and " << threads << " threads";
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
      for (const int threads : kThreads) {
        Workers workers(threads);
        for (const std::string_view name : reducer_names()) {
          const auto reducer =
              make_reducer<T>(name, {.values = length, .max_leaves = leaves.count()}, workers);
          for (const auto assignment : {Assignment::contiguous, Assignment::strided}) {
            ASSERT_EQ(reduced(*reducer, workers, leaves, cores, assignment), expected)
                << name << ": " << length << " values on " << cores << " cores and " << threads
                << " threads";
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
      ASSERT_EQ(reduced(*reducer, workers, leaves, count), leaves.tree_order_sum())
          << name << ", " << count << " leaves";
    }
  }
}

TEST(Reducer, KeepsTheOthersOrderAwayFromTheExactNames) {
  EXPECT_TRUE(is_exact("tree"));
  EXPECT_TRUE(is_exact("chunked-tree"));
  EXPECT_TRUE(is_exact("sharded"));
  EXPECT_FALSE(is_exact("mutex"));
  EXPECT_FALSE(is_exact("tbb"));
  EXPECT_FALSE(is_exact("ring"));
  EXPECT_TRUE(is_exact("auto"));
}

TEST(Reducer, IsKnownByItsName) {
  Workers workers(1);
  EXPECT_THAT(
      test::error_of([&] {
        static_cast<void>(make_reducer<float>("treee", {.values = 1, .max_leaves = 1}, workers));
      }),
      testing::HasSubstr("did you mean 'tree'?"));
}

TEST(Reducer, AutoIsExact) {
  Workers workers(2);
  for (const std::size_t length : {std::size_t{10}, std::size_t{22'000}, std::size_t{1'000'003}}) {
    const auto leaves = random_leaves<float>(8, length);
    const auto reducer = make_reducer<float>("auto", {.values = length, .max_leaves = 8}, workers);
    EXPECT_TRUE(same_bits(reduced(*reducer, workers, leaves, 8), leaves.tree_order_sum()));
  }
}

}  // namespace
}  // namespace rubato
