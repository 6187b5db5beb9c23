#include "loop/runtime/schedule_executor.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

namespace rubato {
namespace {

template <class T>
class ScheduleExecutorOf : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(ScheduleExecutorOf, Types);

// Whole numbers, so that every order of summation gives the exact sum.
template <class T>
void expect_sum_at_every_rank(const Schedule& schedule, int threads) {
  Workers workers(threads);
  ScheduleExecutor<T> executor(schedule, workers);
  for (int repeat = 0; repeat < 2; ++repeat) {
    std::vector<std::vector<T>> arrays(static_cast<std::size_t>(schedule.ranks));
    std::vector<T> sum(static_cast<std::size_t>(schedule.length), T{0});
    for (std::size_t rank = 0; rank < arrays.size(); ++rank) {
      for (std::size_t k = 0; k < sum.size(); ++k) {
        arrays[rank].push_back(static_cast<T>((rank * 31 + k * 7) % 1001));
        sum[k] += arrays[rank].back();
      }
    }
    std::vector<T*> pointers;
    pointers.reserve(arrays.size());
    for (auto& array : arrays) pointers.push_back(array.data());
    executor.run(std::span<T* const>(pointers));
    for (std::size_t rank = 0; rank < arrays.size(); ++rank) {
      ASSERT_EQ(arrays[rank], sum) << "rank " << rank;
    }
  }
}

TYPED_TEST(ScheduleExecutorOf, LeavesTheSumAtEveryRank) {
  for (const std::string_view name : algorithm_names()) {
    for (const Rank ranks : {1, 2, 3, 5, 8, 13, 24}) {
      for (const std::int64_t length : {0, 1, 7, 64, 1003}) {
        for (const int threads : {1, 2, 4}) {
          SCOPED_TRACE(testing::Message() << name << " on " << ranks << " ranks and " << threads
                                          << " threads, " << length << " elements");
          expect_sum_at_every_rank<TypeParam>(make_all_reduce(name, ranks, length), threads);
        }
      }
    }
  }
}

TYPED_TEST(ScheduleExecutorOf, CutsLargeTransfers) {
  for (const std::string_view name : algorithm_names()) {
    SCOPED_TRACE(name);
    expect_sum_at_every_rank<TypeParam>(make_all_reduce(name, 5, 200'003), 4);
  }
}

TYPED_TEST(ScheduleExecutorOf, RunsTwoLevels) {
  for (const std::string_view inner : algorithm_names().first(algorithm_names().size() - 1)) {
    SCOPED_TRACE(inner);
    expect_sum_at_every_rank<TypeParam>(make_two_level_schedule(inner, "ring", 3, 4, 1003), 2);
    expect_sum_at_every_rank<TypeParam>(
        make_two_level_schedule(inner, "recursive-doubling", 3, 4, 1003), 2);
  }
}

}  // namespace
}  // namespace rubato
