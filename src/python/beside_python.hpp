#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>

namespace rubato::python {

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
  /// Whether anything has thrown there: a call, or a signal's handler.
  [[nodiscard]] bool has_failed();

 private:
  friend void run_beside_python(const std::function<void(CallingThread&)>& work,
                                const std::function<void()>& every_moment);

  // For the calling thread, without the GIL: does the calls until the work is done, and
  // `every_moment` in between.
  void serve(const std::function<void()>& every_moment);
  void finish();
  void keep_failure();

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* call_ = nullptr;
  bool finished_ = false;
  std::exception_ptr failure_;
};

/// Runs `work` on a thread of its own, with libtorch's thread-local modes (no_grad, autocast, ...)
/// and the floating-point environment as they are by default, and returns when it is done. The
/// calling thread, which holds the GIL, is without it meanwhile; it takes it to do what the work
/// calls for, and `every_moment`, several times a second. Throws what `work` throws, else the first
/// that was thrown by a call or by `every_moment`.
void run_beside_python(const std::function<void(CallingThread&)>& work,
                       const std::function<void()>& every_moment);

}  // namespace rubato::python
