#pragma once

#include <cstdint>

#include <rubato/libtorch/dataset.hpp>

namespace rubato {

/// The batch that a data set gave for `samples` samples. Throws Error where a tensor of it has
/// another number of rows, or is not on the CPU, or where there are no inputs.
[[nodiscard]] Batch checked_batch(Batch batch, std::int64_t samples);

}  // namespace rubato
