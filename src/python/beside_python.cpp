#include "python/beside_python.hpp"

#include <cfenv>
#include <chrono>
#include <thread>
#include <utility>

#include <pybind11/pybind11.h>

namespace rubato::python {

namespace {

constexpr std::chrono::milliseconds kMoment{50};

}  // namespace

bool CallingThread::run(const std::function<void()>& call) {
  std::unique_lock lock(mutex_);
  if (failure_) return false;
  call_ = &call;
  changed_.notify_all();
  changed_.wait(lock, [&] { return call_ == nullptr; });
  return !failure_;
}

bool CallingThread::has_failed() {
  const std::lock_guard lock(mutex_);
  return static_cast<bool>(failure_);
}

void CallingThread::finish() {
  const std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

void CallingThread::keep_failure() {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::current_exception();
}

void CallingThread::serve(const std::function<void()>& every_moment) {
  std::unique_lock lock(mutex_);
  while (true) {
    const bool changed =
        changed_.wait_for(lock, kMoment, [&] { return finished_ || call_ != nullptr; });
    const std::function<void()>* const call = call_;
    if (changed && call == nullptr) return;
    // The GIL is never waited for with the lock held.
    lock.unlock();
    {
      const pybind11::gil_scoped_acquire gil;
      try {
        changed ? (*call)() : every_moment();
      } catch (...) {
        keep_failure();
      }
    }
    lock.lock();
    if (!changed) continue;
    call_ = nullptr;
    changed_.notify_all();
  }
}

void run_beside_python(const std::function<void(CallingThread&)>& work,
                       const std::function<void()>& every_moment) {
  CallingThread calling;
  std::exception_ptr failure;
  {
    const pybind11::gil_scoped_release free;
    std::thread worker([&] {
      std::fesetenv(FE_DFL_ENV);
      try {
        work(calling);
      } catch (...) {
        failure = std::current_exception();
      }
      calling.finish();
    });
    calling.serve(every_moment);
    worker.join();
  }
  if (failure) std::rethrow_exception(failure);
  if (calling.failure_) std::rethrow_exception(calling.failure_);
}

}  // namespace rubato::python
