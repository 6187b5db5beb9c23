#pragma once

#include <string_view>

#include <rubato/libtorch/model.hpp>
#include <rubato/runs/run_configuration.hpp>

namespace rubato {

/// The loss that --loss names. `script` are the bytes of its file, where it has one. Throws
/// Error for what is no TorchScript.
[[nodiscard]] Loss run_loss(const Parsed<LossChoice>& loss, double label_smoothing,
                            std::string_view script);

}  // namespace rubato
