#include <algorithm>
#include <atomic>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

#include <rubato/loop/workers.hpp>

#include "base/core/limits.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

// Elements of an array that one task works on: for fewer, handing them to another thread costs more
// than a pass over them.
constexpr std::size_t kRange = std::size_t{1} << 16;

// Orders the caller and its tasks: everything that the caller did before the tasks happens before
// them, and everything that the tasks did happens before this object's destructor returns, whether
// or not one of them threw. oneTBB orders both, too, but its library is not compiled for
// ThreadSanitizer, which cannot see that.
class TaskOrder {
 public:
  // Release: publishes everything that the caller did.
  TaskOrder() { begun_.store(true, std::memory_order_release); }
  // Acquire: the additions to ended_ form one release sequence, and this reads the last of them, so
  // everything that the tasks did is visible.
  ~TaskOrder() { static_cast<void>(ended_.load(std::memory_order_acquire)); }
  TaskOrder(const TaskOrder&) = delete;
  TaskOrder& operator=(const TaskOrder&) = delete;

  // Lives as long as a task runs.
  class Part {
   public:
    // Acquire: reads what the constructor has published.
    explicit Part(TaskOrder& order) : order_(order) {
      static_cast<void>(order.begun_.load(std::memory_order_acquire));
    }
    // Release: publishes everything that the task did.
    ~Part() { order_.ended_.fetch_add(1, std::memory_order_release); }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    TaskOrder& order_;
  };

 private:
  std::atomic<bool> begun_{false};
  std::atomic<std::int64_t> ended_{0};
};

}  // namespace

struct Workers::Arena {
  explicit Arena(int threads)
      : parallelism(tbb::global_control::max_allowed_parallelism,
                    static_cast<std::size_t>(threads)),
        arena(threads) {}

  // Without this, oneTBB starts no more threads than the machine has.
  tbb::global_control parallelism;
  tbb::task_arena arena;
};

Workers::Workers(int threads) : threads_(threads) {
  if (threads < 1) throw_error("{} threads: at least 1 is needed", threads);
  // Otherwise oneTBB would discover the lack of threads in a step, on a thread of its own.
  require_threads(threads - 1);
  arena_ = std::make_unique<Arena>(threads);
}

Workers::~Workers() = default;

// Runs one task of oneTBB for each index. A task takes its index when it begins, so indices begin
// in ascending order whatever the threads and however oneTBB splits the range: there are as many
// tasks as indices, and each takes one.
void Workers::for_each(std::int64_t count, const Task& task) {
  std::atomic<std::int64_t> next{0};
  TaskOrder order;
  const auto run_next = [&](const tbb::blocked_range<std::int64_t>&) {
    const TaskOrder::Part part(order);
    // Relaxed: the count orders nothing but itself.
    const std::int64_t index = next.fetch_add(1, std::memory_order_relaxed);
    const int thread = tbb::this_task_arena::current_thread_index();
    tbb::this_task_arena::isolate([&] { task(index, thread); });
  };
  arena_->arena.execute([&] {
    // The partitioner splits the range down to single indices.
    tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, count, 1), run_next,
                      tbb::simple_partitioner());
  });
}

void Workers::run(const std::function<void()>& body) {
  arena_->arena.execute(body);
}

void Workers::for_each_range(std::size_t size, const RangeTask& task) {
  if (size <= kRange) {
    task(0, size);
    return;
  }
  for_each(static_cast<std::int64_t>((size + kRange - 1) / kRange), [&](std::int64_t i, int) {
    const std::size_t begin = static_cast<std::size_t>(i) * kRange;
    task(begin, std::min(begin + kRange, size));
  });
}

}  // namespace rubato
