#pragma once

#include <array>
#include <vector>

#include <rubato/base/parse.hpp>

#include "base/core/vectors.hpp"

namespace rubato {

/// The parts of a training in which two can differ first, in the order in which they are compared.
enum class DiffStage {
  start,        ///< the state with which both begin
  state,        ///< a state that its own run does not have, such as a damaged checkpoint
  trace,        ///< the step: its batch, and its place in the epoch
  samples,      ///< the samples of a minibatch, or their order
  gradient,     ///< the loss or the gradient of a minibatch
  sum,          ///< the sum of the gradients
  rule,         ///< the learning rate, or whether the step is applied
  clipping,     ///< clipping, and transforms of the gradient
  update,       ///< the optimizer
  kernels,      ///< what computed the step: kernels, libraries, CPU
  unexplained,  ///< a record that cannot be repeated, for an unknown reason
  files,        ///< a file that is not as its run wrote it, or a recorded number
  length,       ///< one has more steps than the other
};
inline constexpr std::array<Choice<DiffStage>, 13> kDiffStages{
    {{DiffStage::start, "start"},
     {DiffStage::state, "state"},
     {DiffStage::trace, "trace"},
     {DiffStage::samples, "samples"},
     {DiffStage::gradient, "gradient"},
     {DiffStage::sum, "sum"},
     {DiffStage::rule, "rule"},
     {DiffStage::clipping, "clipping"},
     {DiffStage::update, "update"},
     {DiffStage::kernels, "kernels"},
     {DiffStage::unexplained, "unexplained"},
     {DiffStage::files, "files"},
     {DiffStage::length, "length"}}};

[[nodiscard]] inline std::vector<DiffStage> every_stage() {
  return vector_of(kDiffStages, &Choice<DiffStage>::value);
}

}  // namespace rubato
