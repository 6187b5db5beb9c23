#pragma once

#include <string>
#include <string_view>

#include <rubato/model/model.hpp>

namespace rubato {

/// The loss of that name (--loss). `script` are the bytes of its file, where it has one. Throws
/// Error for what is no TorchScript.
[[nodiscard]] Loss run_loss(const std::string& name, double label_smoothing,
                            std::string_view script);

}  // namespace rubato
