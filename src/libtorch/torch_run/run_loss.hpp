#pragma once

#include <string_view>

#include <rubato/libtorch/model.hpp>
#include <rubato/runs/run_configuration.hpp>

namespace rubato {

/// The loss that --loss names. `script` is the content of its file, if it has one. Throws Error for
/// a file that is not TorchScript.
[[nodiscard]] Loss run_loss(const Parsed<LossChoice>& loss, double label_smoothing,
                            std::string_view script);

}  // namespace rubato
