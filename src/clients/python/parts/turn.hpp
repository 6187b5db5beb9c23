#pragma once

namespace rubato::python {

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
