#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/libtorch/dataset.hpp>

#include "libtorch/model/replica.hpp"

namespace rubato {

/// One or more minibatches of `size` samples to try a model out on. They include the data set's
/// extremes(), so that a target out of range is found.
[[nodiscard]] std::vector<std::vector<std::int64_t>> trial_minibatches(const Dataset& dataset,
                                                                       std::int64_t size);

/// Describes such a minibatch for people: "a minibatch of the training data, tried before training
/// (inputs Float [32, 1, 28, 28], targets Long [32] from 0 to 9)". `name` names the data, as in
/// "training data".
[[nodiscard]] std::string place_of_trial(const Dataset& dataset, std::int64_t size,
                                         std::string_view name);

/// The loss for minibatches that are tried: it throws Error for outputs and targets that do not
/// match (Loss::check()), even if libtorch would accept them and broadcast one of them. `loss` must
/// outlive it.
[[nodiscard]] Loss tried_loss(const Loss& loss);

/// Evaluates a minibatch of the data set with `replica`. Throws TrainingError.
void try_evaluation(Replica& replica, const Loss& loss, const Dataset& dataset, std::int64_t size,
                    std::string_view name);

}  // namespace rubato
