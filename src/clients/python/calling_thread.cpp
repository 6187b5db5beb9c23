// One mutex and one condition variable connect the worker with the calling thread. The worker hands
// over a pointer to a function on its stack, and waits until serve() has executed it under the GIL
// and cleared the pointer; between calls, serve() runs `every_moment` every kMoment. The GIL is
// never waited for while the mutex is held, so the two cannot deadlock. An abandoned worker is
// detached: it shares the ownership of the CallingThread, and destroys its work with the GIL held,
// since that owns Python objects. TrainingTurn and end_training() use atomics of the process
// instead, because they also have to hold between calls and in forked processes.

#include "calling_thread.hpp"

#include <atomic>
#include <cfenv>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <rubato/base/error.hpp>

namespace rubato::python {

namespace {

constexpr std::chrono::milliseconds kMoment{50};

}  // namespace

void handle_signals() {
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

void SignalCheck::operator()() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < kMoment) return;
  last_ = now;
  const pybind11::gil_scoped_acquire gil;
  handle_signals();
}

bool CallingThread::run(const std::function<void()>& call) {
  std::unique_lock lock(mutex_);
  if (has_failed_) return false;
  if (swap_) swap_();
  call_ = &call;
  changed_.notify_all();
  changed_.wait(lock, [&] { return call_ == nullptr; });
  if (swap_) swap_();
  return !has_failed_;
}

bool CallingThread::has_failed() {
  const std::lock_guard lock(mutex_);
  return has_failed_;
}

bool CallingThread::is_abandoned() {
  const std::lock_guard lock(mutex_);
  return abandoned_;
}

void CallingThread::require_not_abandoned() {
  if (is_abandoned()) throw Abandoned("the training was abandoned");
}

bool CallingThread::finish(std::exception_ptr thrown) {
  const std::lock_guard lock(mutex_);
  thrown_ = std::move(thrown);
  finished_ = true;
  changed_.notify_all();
  return !abandoned_;
}

bool CallingThread::keep_failure() {
  const std::lock_guard lock(mutex_);
  if (has_failed_) return false;
  has_failed_ = true;
  failure_ = std::current_exception();
  return true;
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
    bool again = false;
    {
      const pybind11::gil_scoped_acquire gil;
      try {
        changed ? (*call)() : every_moment();
      } catch (...) {
        again = !keep_failure();
      }
    }
    lock.lock();
    if (changed) {
      call_ = nullptr;
      changed_.notify_all();
    } else if (again) {
      abandoned_ = !finished_;
      return;
    }
  }
}

WorkEnd run_beside_python(std::function<void(CallingThread&)> work,
                          const std::function<void()>& every_moment) {
  const auto calling = std::make_shared<CallingThread>();
  {
    const pybind11::gil_scoped_release free;
    std::thread worker([calling, work = std::move(work)]() mutable {
      std::fesetenv(FE_DFL_ENV);
      std::exception_ptr thrown;
      try {
        work(*calling);
      } catch (...) {
        thrown = std::current_exception();
      }
      if (calling->finish(std::move(thrown))) return;
      const pybind11::gil_scoped_acquire gil;
      work = nullptr;
    });
    calling->serve(every_moment);
    calling->is_abandoned() ? worker.detach() : worker.join();
  }
  const std::lock_guard lock(calling->mutex_);
  if (!calling->has_failed_ && calling->thrown_) std::rethrow_exception(calling->thrown_);
  // The failure is moved out so that the other thread does not destroy it.
  return {.failure = std::exchange(calling->failure_, nullptr), .abandoned = calling->abandoned_};
}

namespace {

enum class Turn { free, taken, over };
std::atomic<Turn> the_turn{Turn::free};
std::atomic<bool> asked_to_stop{false};
// The process that has trained first; 0 means none.
std::atomic<pid_t> the_process{0};

}  // namespace

TrainingTurn::TrainingTurn() {
  pid_t none = 0;
  if (!the_process.compare_exchange_strong(none, getpid()) && none != getpid()) {
    throw Error(
        "this process was forked from one that has trained, and does not have its threads; "
        "accepted: "
        "a new process (multiprocessing.get_context(\"spawn\"))");
  }
  Turn expected = Turn::free;
  if (the_turn.compare_exchange_strong(expected, Turn::taken)) return;
  throw Error(expected == Turn::over
                  ? "the interpreter is shutting down; accepted: a training before that"
                  : "another training is under way in this process; accepted: one after the "
                    "other, or a process for each");
}

TrainingTurn::~TrainingTurn() {
  Turn expected = Turn::taken;
  the_turn.compare_exchange_strong(expected, Turn::free);
}

bool TrainingTurn::is_to_end() {
  return asked_to_stop;
}

void end_training() {
  // A forked process has no training, whatever it has inherited.
  if (const pid_t trained = the_process; trained != 0 && trained != getpid()) return;
  asked_to_stop = true;
  const pybind11::gil_scoped_release free;
  Turn expected = Turn::free;
  while (!the_turn.compare_exchange_weak(expected, Turn::over) && expected != Turn::over) {
    expected = Turn::free;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace rubato::python
