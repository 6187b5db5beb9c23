#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>

#include <rubato/base/error.hpp>

namespace rubato::python {

struct WorkEnd;

/// Ends work for which nobody waits any more.
class Abandoned : public Error {
 public:
  using Error::Error;
};

/// The thread that called into this module from Python, as seen by the worker thread: everything
/// that needs Python runs on it, so that the worker never holds the GIL.
class CallingThread {
 public:
  CallingThread() = default;
  ~CallingThread() = default;
  CallingThread(const CallingThread&) = delete;
  CallingThread& operator=(const CallingThread&) = delete;

  /// Runs `call` on the calling thread, which holds the GIL meanwhile, and waits for it. Returns
  /// false if this call, or anything before it, threw there: the exception is for the calling
  /// thread, and the work has to end.
  bool run(const std::function<void()>& call);
  /// Sets a function that exchanges states of the process that the work has changed for those that
  /// Python had, and back: called before and after each call.
  void around_calls(std::function<void()> swap) { swap_ = std::move(swap); }
  /// True if anything has thrown on the calling thread: a call, or a signal's handler.
  [[nodiscard]] bool has_failed();
  /// True if nobody waits for the work any more.
  [[nodiscard]] bool is_abandoned();
  /// Throws Abandoned if nobody waits for the work any more, so that it ends.
  void require_not_abandoned();

 private:
  friend WorkEnd run_beside_python(std::function<void(CallingThread&)> work,
                                   const std::function<void()>& every_moment);

  // Called by the calling thread, without the GIL: runs the calls until the work is done or
  // abandoned, and `every_moment` in between.
  void serve(const std::function<void()>& every_moment);
  // Called by the worker: returns whether somebody still waits for the exception.
  bool finish(std::exception_ptr thrown);
  // Keeps the current exception; returns false if there was one already.
  bool keep_failure();

  std::mutex mutex_;
  std::condition_variable changed_;
  // Called by the worker thread.
  std::function<void()> swap_;
  const std::function<void()>* call_ = nullptr;
  bool has_failed_ = false;
  bool finished_ = false;
  bool abandoned_ = false;
  // The first exception of the calling thread, and the exception of the work.
  std::exception_ptr failure_;
  std::exception_ptr thrown_;
};

/// How work beside Python has ended.
struct WorkEnd {
  /// First exception of the calling thread, from a call or from `every_moment`; null if there was
  /// none.
  std::exception_ptr failure{};
  /// The work has not ended: it continues by itself.
  bool abandoned = false;
};

/// Runs `work` on a thread of its own, with the default thread-local modes of libtorch (no_grad,
/// autocast, ...) and the default floating-point environment, and returns when it is done. The
/// calling thread, which holds the GIL, releases it meanwhile; it takes it to run the calls of the
/// work, and `every_moment`, several times a second. Throws what `work` throws, unless there is a
/// WorkEnd::failure.
///
/// If `every_moment` throws after something has been thrown already, the function returns at once,
/// and the abandoned work ends by itself. Everything that it uses must be its own: `work` is
/// destroyed, with the GIL held, when it is done.
[[nodiscard]] WorkEnd run_beside_python(std::function<void(CallingThread&)> work,
                                        const std::function<void()>& every_moment);

/// Makes Python handle signals; requires the GIL. Throws pybind11::error_already_set if a handler
/// throws, as that of Ctrl-C does.
void handle_signals();

/// handle_signals(), several times a second however often it is called. For long work on
/// the calling thread itself, without the GIL.
class SignalCheck {
 public:
  void operator()();

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// The only training of a process, while this object lives: libtorch's number of threads and the
/// kernels belong to the process.
class TrainingTurn {
 public:
  /// Throws Error if another training is under way, after end_training(), and in a process that was
  /// forked from one that has trained.
  TrainingTurn();
  ~TrainingTurn();
  TrainingTurn(const TrainingTurn&) = delete;
  TrainingTurn& operator=(const TrainingTurn&) = delete;

  /// True if the interpreter is shutting down, so that the training has to end.
  [[nodiscard]] static bool is_to_end();
};

/// Asks the training that is under way to stop, waits for it, and lets no other one begin. Called
/// before the interpreter shuts down.
void end_training();

}  // namespace rubato::python
