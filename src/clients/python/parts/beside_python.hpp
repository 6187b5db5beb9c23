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

/// Ends work that nobody waits for any more, as it stands.
class Abandoned : public Error {
 public:
  using Error::Error;
};

/// The thread that called into this module from Python, as the thread sees it that works for it:
/// whoever needs Python has it done there, and so never holds the GIL.
class CallingThread {
 public:
  CallingThread() = default;
  ~CallingThread() = default;
  CallingThread(const CallingThread&) = delete;
  CallingThread& operator=(const CallingThread&) = delete;

  /// Runs `call` on the calling thread, which then holds the GIL, and waits for it. Returns false
  /// where it threw, or anything before it did: the exception is for the calling thread, and work
  /// is to come to an end.
  bool run(const std::function<void()>& call);
  /// Sets what exchanges the process's states that the work has changed for those that Python had,
  /// and back: called before and after each call.
  void around_calls(std::function<void()> swap) { swap_ = std::move(swap); }
  /// Whether anything has thrown there: a call, or a signal's handler.
  [[nodiscard]] bool has_failed();
  /// Whether nobody waits for the work any more.
  [[nodiscard]] bool is_abandoned();
  /// Throws Abandoned where nobody does, so that the work ends.
  void require_not_abandoned();

 private:
  friend WorkEnd run_beside_python(std::function<void(CallingThread&)> work,
                                   const std::function<void()>& every_moment);

  // For the calling thread, without the GIL: does the calls until the work is done or abandoned,
  // and `every_moment` in between.
  void serve(const std::function<void()>& every_moment);
  // For the other: returns whether somebody still waits for what it threw.
  bool finish(std::exception_ptr thrown);
  // Whether it was the first.
  bool keep_failure();

  std::mutex mutex_;
  std::condition_variable changed_;
  // Called by the work's thread.
  std::function<void()> swap_;
  const std::function<void()>* call_ = nullptr;
  bool has_failed_ = false;
  bool finished_ = false;
  bool abandoned_ = false;
  // What was thrown first on the calling thread, and what the work threw.
  std::exception_ptr failure_;
  std::exception_ptr thrown_;
};

/// How work beside Python has come to its end.
struct WorkEnd {
  /// The first that was thrown on the calling thread, by a call or by what it does every moment;
  /// null where nothing was.
  std::exception_ptr failure{};
  /// Whether it has not: it goes on by itself.
  bool abandoned = false;
};

/// Runs `work` on a thread of its own, with libtorch's thread-local modes (no_grad, autocast, ...)
/// and the floating-point environment as they are by default, and returns when it is done. The
/// calling thread, which holds the GIL, is without it meanwhile; it takes it to do what the work
/// calls for, and `every_moment`, several times a second. Throws what `work` throws, unless there
/// is a WorkEnd::failure.
///
/// Where `every_moment` throws after something has been thrown already, this returns at once, and
/// the work, which is abandoned, comes to its end by itself. All that it uses must be its own:
/// `work` is destroyed, with the GIL held, when it is done.
[[nodiscard]] WorkEnd run_beside_python(std::function<void(CallingThread&)> work,
                                        const std::function<void()>& every_moment);

/// For the calling thread, without the GIL, in work of its own that takes long: has Python handle
/// signals, several times a second however often it is called.
class SignalCheck {
 public:
  /// Throws pybind11::error_already_set where a handler throws, as that of Ctrl-C does.
  void operator()();

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace rubato::python
