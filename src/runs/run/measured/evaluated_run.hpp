#pragma once

#include <filesystem>
#include <span>

#include <rubato/base/state.hpp>

namespace rubato {

/// Throws Error if `weights` is the folder of a run and its summary.json names parameters other
/// than these, which were read from it.
void require_weights_of_summary(const std::filesystem::path& weights,
                                std::span<const NamedArray> parameters);

}  // namespace rubato
