#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <oneapi/tbb/task_group.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/workers.hpp>

#include "support/error_of.hpp"

namespace rubato {
namespace {

using namespace std::chrono_literals;

// Which thread numbers are in a task at this moment.
class Presence {
 public:
  explicit Presence(int threads) : inside_(static_cast<std::size_t>(threads)) {}

  /// False when the number is out of range or already inside.
  bool enter(int thread) {
    if (thread < 0 || thread >= static_cast<int>(inside_.size())) return false;
    return !inside_[static_cast<std::size_t>(thread)].exchange(true);
  }
  void leave(int thread) { inside_[static_cast<std::size_t>(thread)].store(false); }

 private:
  std::vector<std::atomic<bool>> inside_;
};

class WorkersOf : public testing::TestWithParam<int> {};

TEST_P(WorkersOf, RunEveryIndexOnce) {
  Workers workers(GetParam());
  EXPECT_EQ(workers.threads(), GetParam());
  for (const std::size_t count : {0U, 1U, 2U, 3U, 7U, 64U, 1000U}) {
    // Plain numbers: what the tasks did is visible when for_each() is back.
    std::vector<int> runs(count, 0);
    workers.for_each(static_cast<std::int64_t>(count),
                     [&](std::int64_t i, int) { ++runs[static_cast<std::size_t>(i)]; });
    EXPECT_THAT(runs, testing::Each(1)) << count << " tasks";
  }
}

TEST_P(WorkersOf, GiveTasksThatRunTogetherDifferentThreads) {
  Workers workers(GetParam());
  Presence presence(GetParam());
  std::atomic<int> failures{0};
  workers.for_each(200, [&](std::int64_t, int thread) {
    if (!presence.enter(thread)) {
      failures.fetch_add(1);
      return;
    }
    std::this_thread::sleep_for(50us);
    presence.leave(thread);
  });
  EXPECT_EQ(failures.load(), 0);
}

TEST_P(WorkersOf, ThrowATasksExceptionAndGoOn) {
  Workers workers(GetParam());
  for (std::int64_t failing = 0; failing < 20; ++failing) {
    try {
      workers.for_each(20, [&](std::int64_t i, int) {
        if (i == failing) throw std::out_of_range("task " + std::to_string(i));
      });
      FAIL() << "nothing thrown";
    } catch (const std::out_of_range& error) {
      EXPECT_EQ(error.what(), "task " + std::to_string(failing));
    }
    std::atomic<int> runs{0};
    workers.for_each(20, [&](std::int64_t, int) { runs.fetch_add(1); });
    EXPECT_EQ(runs.load(), 20);
  }
}

TEST_P(WorkersOf, ThrowOneOfManyExceptionsAfterAllTasksAreBack) {
  Workers workers(GetParam());
  std::atomic<int> inside{0};
  EXPECT_THROW(workers.for_each(50,
                                [&](std::int64_t, int) {
                                  inside.fetch_add(1);
                                  std::this_thread::sleep_for(100us);
                                  inside.fetch_sub(1);
                                  throw Error("each");
                                }),
               Error);
  EXPECT_EQ(inside.load(), 0);
}

// The first task throws when another is under way, and the others end after that. Each of these
// takes a while, so that all of them would take seconds, where only those are to run that began
// before the exception was noticed.
TEST_P(WorkersOf, LeaveOutWhatHasNotBegunWhenATaskThrows) {
  Workers workers(GetParam());
  const std::int64_t together = std::min(2, GetParam());
  const std::int64_t count = std::int64_t{3000} * GetParam();
  std::atomic<std::int64_t> begun{0};
  std::atomic<bool> thrown{false};
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  EXPECT_THROW(workers.for_each(count,
                                [&](std::int64_t i, int) {
                                  begun.fetch_add(1);
                                  if (i == 0) {
                                    while (begun.load() < together &&
                                           std::chrono::steady_clock::now() < deadline) {
                                      std::this_thread::yield();
                                    }
                                    thrown.store(true);
                                    throw Error("the first");
                                  }
                                  while (!thrown.load()) std::this_thread::yield();
                                  std::this_thread::sleep_for(1ms);
                                }),
               Error);
  EXPECT_GE(begun.load(), together) << "a second thread came";
  EXPECT_LT(begun.load(), count);
}

// A thread that waits in an algorithm of its own task takes up no other task of the loop: there it
// would run under the first task's thread-local state.
//
// oneTBB's own threads are held back (`one`), so that the rest of the loop lies where the calling
// thread looks first. The first task waits for a piece of work that another thread ends only after
// the waiting one has begun to look for something to do, and has had a while for it.
TEST_P(WorkersOf, KeepOtherTasksOutOfATaskThatWaits) {
  const Workers one(1);
  Workers workers(GetParam());
  std::atomic<bool> looking{false};
  bool inside = false;
  int entered_twice = 0;
  std::int64_t runs = 0;
  workers.for_each(64, [&](std::int64_t i, int) {
    ++runs;
    if (inside) ++entered_twice;
    if (i != 0) return;
    inside = true;
    tbb::task_group group;
    tbb::task_handle open_end = group.defer([] {});
    std::thread ending([&looking, end = std::move(open_end)]() mutable {
      while (!looking.load()) std::this_thread::yield();
      std::this_thread::sleep_for(50ms);
      end = {};
    });
    group.run([&looking] { looking.store(true); });
    group.wait();
    inside = false;
    ending.join();
  });
  EXPECT_EQ(entered_twice, 0);
  EXPECT_EQ(runs, 64);
}

INSTANTIATE_TEST_SUITE_P(Threads, WorkersOf, testing::Values(1, 2, 4, 8));

TEST(Workers, OfOneThreadGoUpwardsAndStopAtAnException) {
  Workers workers(1);
  std::vector<std::int64_t> order;
  workers.for_each(100, [&](std::int64_t i, int) { order.push_back(i); });
  std::vector<std::int64_t> upwards(100);
  std::iota(upwards.begin(), upwards.end(), 0);
  EXPECT_EQ(order, upwards);

  order.clear();
  EXPECT_THROW(workers.for_each(100,
                                [&](std::int64_t i, int) {
                                  order.push_back(i);
                                  if (i == 41) throw Error("stop");
                                }),
               Error);
  upwards.resize(42);
  EXPECT_EQ(order, upwards) << "tasks not yet begun are left out";
}

TEST(Workers, MayBeMoreThanTheMachineHas) {
  const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency())) + 3;
  Workers workers(threads);
  // Waiting for others is what no task of the product does; here it shows that all threads are
  // there at one time. A task that has waited for long gives up, and the test fails.
  std::atomic<int> arrived{0};
  std::atomic<int> gave_up{0};
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  workers.for_each(threads, [&](std::int64_t, int) {
    arrived.fetch_add(1);
    while (arrived.load() < threads) {
      if (std::chrono::steady_clock::now() > deadline) {
        gave_up.fetch_add(1);
        return;
      }
      std::this_thread::sleep_for(1ms);
    }
  });
  EXPECT_EQ(gave_up.load(), 0) << "of " << threads << " threads";
}

TEST(Workers, NeedAThread) {
  for (const int threads : {0, -1}) {
    EXPECT_EQ(error_of([&] { Workers workers(threads); }),
              std::to_string(threads) + " threads: at least 1 is needed");
  }
}

}  // namespace
}  // namespace rubato
