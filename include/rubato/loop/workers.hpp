#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace rubato {

/// The threads on which the emulated cores run: a oneTBB arena of fixed size.
///
/// More threads than the machine has are allowed. While several live, oneTBB gives none of them
/// more threads than the smallest asked for; their results are the same. Not to be used by two
/// threads at once, nor from within a task of its own.
class Workers {
 public:
  /// Throws Error when `threads` is below 1.
  explicit Workers(int threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  [[nodiscard]] int threads() const { return threads_; }

  /// What for_each() calls: the task's index, and which of the threads runs it. Tasks that run at
  /// the same time have different `thread`s, so `thread` may pick scratch memory.
  using Task = std::function<void(std::int64_t index, int thread)>;

  /// Runs task(0, .), ..., task(count - 1, .) and returns when all have returned. A thread that is
  /// free takes the lowest index that nobody has taken: tasks begin in ascending order, and at most
  /// as many as there are threads have begun and not ended. No task may wait for another. What all
  /// tasks did happens before the return. The first exception that a task throws is thrown again
  /// here; tasks not yet begun are then left out.
  ///
  /// A task may itself call oneTBB's algorithms: it is isolated, so that a thread which waits in
  /// one never picks up another task of this loop in the middle of its own.
  void for_each(std::int64_t count, const Task& task);

  /// Runs `body` on the calling thread, as a task of the arena: oneTBB's algorithms in it have all
  /// threads.
  void run(const std::function<void()>& body);

  /// What for_each_range() calls: the half-open range [begin, end).
  using RangeTask = std::function<void(std::size_t begin, std::size_t end)>;

  /// Runs task() on ranges that together are [0, size), as for_each() does. Where they are cut
  /// depends on `size` only. A size that is not worth handing to another thread is one range, on
  /// the calling thread.
  void for_each_range(std::size_t size, const RangeTask& task);

 private:
  struct Arena;
  std::unique_ptr<Arena> arena_;
  int threads_;
};

}  // namespace rubato
