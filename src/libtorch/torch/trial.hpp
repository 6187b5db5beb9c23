#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/libtorch/dataset.hpp>

#include "libtorch/model/replica/replica.hpp"

namespace rubato {

/// Minibatches of `size` samples, one or two, to try a model out on: with the data set's
/// extremes() among them, so that a target which is out of range is found.
[[nodiscard]] std::vector<std::vector<std::int64_t>> trial_minibatches(const Dataset& dataset,
                                                                       std::int64_t size);

/// Where such a minibatch is, for people: "a minibatch tried out before training (inputs Float [32,
/// 1, 28, 28], targets Long [32] from 0 to 9)". `name` names the data, as in "training data".
[[nodiscard]] std::string place_of_trial(const Dataset& dataset, std::int64_t size,
                                         std::string_view name);

/// The loss for minibatches that are tried: it throws Error for outputs and targets that do not go
/// together although libtorch takes them (Loss::check()), where it would broadcast the one or the
/// other. `loss` must outlive it.
[[nodiscard]] Loss tried_loss(const Loss& loss);

/// Evaluates a minibatch of the data set by `replica`. Throws TrainingError.
void try_evaluation(Replica& replica, const Loss& loss, const Dataset& dataset, std::int64_t size,
                    std::string_view name);

}  // namespace rubato
