#include "turn.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <rubato/base/error.hpp>

namespace rubato::python {

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
