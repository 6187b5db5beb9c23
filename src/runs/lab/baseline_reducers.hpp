#pragma once

#include <memory>
#include <span>
#include <string_view>

#include <rubato/loop/reducer.hpp>

namespace rubato::lab {

/// The reducers against which those of training are measured. Training does not offer them, as none
/// is reproducible and none is faster:
///
///   mutex   one sum under one lock
///   atomic  one sum, each value added atomically
///   tbb     keeps all leaves, and sums them by oneTBB's parallel_deterministic_reduce
[[nodiscard]] std::span<const std::string_view> baseline_names();

/// The reducer of that name; null if there is none. The workers must outlive it.
[[nodiscard]] std::unique_ptr<Reducer<float>> make_baseline(std::string_view name,
                                                            const ReducerSize& size,
                                                            Workers& workers);

}  // namespace rubato::lab
