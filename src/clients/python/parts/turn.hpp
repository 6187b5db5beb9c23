#pragma once

namespace rubato::python {

/// The one training of a process, for as long as it lives: libtorch's number of threads and the
/// kernels are the process's.
class TrainingTurn {
 public:
  /// Throws Error where another is under way, after end_training(), and in a process that was
  /// forked from one that has trained.
  TrainingTurn();
  ~TrainingTurn();
  TrainingTurn(const TrainingTurn&) = delete;
  TrainingTurn& operator=(const TrainingTurn&) = delete;

  /// Whether the interpreter is going, so that the training is to end.
  [[nodiscard]] static bool is_to_end();
};

/// Asks the training that is under way to stop, waits for it, and lets no other begin: before the
/// interpreter goes.
void end_training();

}  // namespace rubato::python
