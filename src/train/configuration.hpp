#pragma once

#include <string>

#include <rubato/model/shared_state.hpp>
#include <rubato/plan/plan.hpp>
#include <rubato/train/trainer.hpp>

namespace rubato {

/// All that decides the bits of a training, as lines "name = value": what a state is bound to.
/// Epochs are not among them, nor who computes it.
[[nodiscard]] std::string configuration_of(const TrainOptions& options, const Planner& planner,
                                           const TensorDataset& train, const SharedState& state);

/// Throws Error, naming all lines that differ, when `saved` is not `own`.
void require_same_configuration(const std::string& saved, const std::string& own);

}  // namespace rubato
