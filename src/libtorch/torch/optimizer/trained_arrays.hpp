#pragma once

#include <vector>

#include <rubato/loop/optimizer.hpp>

#include "libtorch/model/replica/shared_state.hpp"

namespace rubato {

/// The trained parameters, as they lie in SharedState::flat_parameters().
[[nodiscard]] std::vector<TrainedArray> trained_arrays(const SharedState& state);

}  // namespace rubato
