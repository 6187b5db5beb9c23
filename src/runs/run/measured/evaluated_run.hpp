#pragma once

#include <filesystem>
#include <span>

#include <rubato/base/state.hpp>

namespace rubato {

/// Throws Error unless the trained parameters that were read of `weights`, where it is the folder
/// of a run, are those that its summary.json names.
void require_weights_of_summary(const std::filesystem::path& weights,
                                std::span<const NamedArray> parameters);

}  // namespace rubato
