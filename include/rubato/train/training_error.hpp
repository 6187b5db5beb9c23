#pragma once

#include <array>
#include <exception>
#include <string>

#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>

namespace rubato {

/// What is done with a minibatch, in this order.
enum class Phase {
  /// Gathering its samples, and changing them at random (TorchOptions::augment).
  data,
  forward,
  loss,
  backward,
  /// Forward and loss without training.
  evaluation,
};

inline constexpr std::array<Choice<Phase>, 5> kPhases{{{Phase::data, "data"},
                                                       {Phase::forward, "forward"},
                                                       {Phase::loss, "loss"},
                                                       {Phase::backward, "backward"},
                                                       {Phase::evaluation, "evaluation"}}};

/// An exception of the objective (the model, the loss, libtorch) in training, with its place:
///
///     forward of minibatch 3 of 8 at epoch 1, step 5 of the run: mat1 and mat2 shapes cannot be
///     multiplied (4x6 and 5x3)
///
/// The original exception is nested in it (std::rethrow_if_nested()). Exceptions that say that
/// there is no memory are passed on as they are (is_out_of_memory(), core/memory.hpp).
class TrainingError : public Error, public std::nested_exception {
 public:
  /// In a handler of the original exception.
  TrainingError(Phase phase, const std::string& place, const std::string& message,
                std::string details);

  [[nodiscard]] Phase phase() const { return phase_; }
  /// All that the original exception said, libtorch's stack included.
  [[nodiscard]] const std::string& details() const { return details_; }

 private:
  Phase phase_;
  std::string details_;
};

/// To be called in a handler: rethrows the exception being handled as a TrainingError with that
/// phase and place, or as it is if it reports a lack of memory or already has a place.
[[noreturn]] void rethrow_with_place(Phase phase, const std::string& place);

}  // namespace rubato
