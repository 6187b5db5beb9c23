#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace rubato {

/// The threads on which the emulated cores run: a oneTBB arena of fixed size.
///
/// The number of threads may exceed that of the machine. While several Workers live, oneTBB gives
/// none of them more threads than the smallest asked for; their results are the same. Not to be
/// used by two threads at once, nor from within one of its own tasks.
class Workers {
 public:
  /// Throws Error if `threads` is below 1.
  explicit Workers(int threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  [[nodiscard]] int threads() const { return threads_; }

  /// The type of tasks for for_each(): it receives the task's index and the thread that runs it.
  /// Tasks that run at the same time have different `thread`s, so `thread` may select scratch
  /// memory.
  using Task = std::function<void(std::int64_t index, int thread)>;

  /// Runs task(0, .), ..., task(count - 1, .) and returns when all have returned. A free thread
  /// takes the lowest index that is left: tasks begin in ascending order, and at most as many as
  /// there are threads are running at any time. No task may wait for another. Everything that the
  /// tasks did happens before the return. The first exception that a task throws is rethrown here;
  /// tasks not yet begun are then left out.
  ///
  /// A task may itself call oneTBB's algorithms: it is isolated, so a thread that waits in one
  /// never picks up another task of this loop in the middle of its own.
  void for_each(std::int64_t count, const Task& task);

  /// Runs `body` on the calling thread, as a task of the arena, so that oneTBB's algorithms in it
  /// can use all threads.
  void run(const std::function<void()>& body);

  /// The type of tasks for for_each_range(): they receive the half-open range [begin, end).
  using RangeTask = std::function<void(std::size_t begin, std::size_t end)>;

  /// Runs task() on ranges that together are [0, size), as for_each() does. The division depends on
  /// `size` only. A size that is not worth handing to another thread is one range, on the calling
  /// thread.
  void for_each_range(std::size_t size, const RangeTask& task);

 private:
  struct Arena;
  std::unique_ptr<Arena> arena_;
  int threads_;
};

}  // namespace rubato
