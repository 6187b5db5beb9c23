#pragma once

#include <cstdint>

#include <rubato/libtorch/dataset.hpp>

namespace rubato {

/// Returns the batch that a data set gave for `samples` samples. Throws Error if a tensor of it has
/// another number of rows, or is not on the CPU, or if there are no inputs.
[[nodiscard]] Batch checked_batch(Batch batch, std::int64_t samples);

}  // namespace rubato
