#include <algorithm>
#include <atomic>

#include <fmt/format.h>
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

#include <rubato/core/error.hpp>
#include <rubato/runtime/workers.hpp>

namespace rubato {

namespace {

// Elements of an array that one task works on: below this, handing them to another thread costs
// more than a pass over them.
constexpr std::size_t kRange = std::size_t{1} << 16;

// What the caller did before the tasks happens before them, and what they do before all that the
// caller does once this is gone, whether or not one of them threw. oneTBB orders both, too, but its
// library is not compiled for ThreadSanitizer, which sees none of that.
class TaskOrder {
 public:
  TaskOrder() { begun_.store(true, std::memory_order_release); }
  ~TaskOrder() { static_cast<void>(ended_.load(std::memory_order_acquire)); }
  TaskOrder(const TaskOrder&) = delete;
  TaskOrder& operator=(const TaskOrder&) = delete;

  // Of a thread, for as long as it runs tasks.
  class Part {
   public:
    explicit Part(TaskOrder& order) : order_(order) {
      static_cast<void>(order.begun_.load(std::memory_order_acquire));
    }
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

  // Without it oneTBB starts no more threads than the machine has.
  tbb::global_control parallelism;
  tbb::task_arena arena;
};

Workers::Workers(int threads) : threads_(threads) {
  if (threads < 1) throw Error(fmt::format("{} threads: at least 1 is needed", threads));
  arena_ = std::make_unique<Arena>(threads);
}

Workers::~Workers() = default;

void Workers::for_each(std::int64_t count, const Task& task) {
  std::atomic<std::int64_t> next{0};
  TaskOrder order;
  const auto take_tasks = [&](const tbb::blocked_range<std::int64_t>&) {
    const TaskOrder::Part part(order);
    const int thread = tbb::this_task_arena::current_thread_index();
    // Relaxed: the count orders nothing but itself.
    for (std::int64_t i = 0; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
      try {
        tbb::this_task_arena::isolate([&] { task(i, thread); });
      } catch (...) {
        // Relaxed: a task that begins nevertheless does no harm.
        next.store(count, std::memory_order_relaxed);
        throw;
      }
    }
  };
  // As many takers as threads; where fewer threads come, the first takers leave the others nothing.
  const std::int64_t takers = std::min<std::int64_t>(count, threads_);
  arena_->arena.execute([&] {
    tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, takers, 1), take_tasks,
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
