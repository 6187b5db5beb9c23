#pragma once

#include <rubato/state/state.hpp>
#include <rubato/train/records.hpp>

namespace rubato {

/// What training has come to, as a part of a trainer's state.
void put_result(State& state, const TrainResult& result);
/// The result that put_result() put. Throws Error when it is damaged.
[[nodiscard]] TrainResult result_of(const State& state);

/// The part of an epoch with which a training ended.
void put_part(State& state, const EpochPart& part);
[[nodiscard]] std::optional<EpochPart> part_of(const State& state);

}  // namespace rubato
