#pragma once

#include <optional>

#include <rubato/base/state.hpp>
#include <rubato/loop/records.hpp>

namespace rubato {

/// What training has come to, as a part of a trainer's state: loaded into a result that is empty.
void visit_result(StateVisitor& state, TrainResult& result);

/// The part of an epoch with which a training ended.
void visit_part(StateVisitor& state, std::optional<EpochPart>& part);

}  // namespace rubato
