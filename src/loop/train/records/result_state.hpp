#pragma once

#include <optional>

#include <rubato/base/state.hpp>
#include <rubato/loop/records.hpp>

namespace rubato {

/// Visits the result of training as a part of a trainer's state. Loading requires an empty result.
void visit_result(StateVisitor& state, TrainResult& result);

/// Visits the part of an epoch with which a training ended.
void visit_part(StateVisitor& state, std::optional<EpochPart>& part);

}  // namespace rubato
