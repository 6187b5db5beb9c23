#pragma once

#include <string>

#include <rubato/model/model.hpp>

namespace rubato {

/// The loss of that name (--loss). `script` are the bytes of its file, where it has one. Throws
/// Error for what is no TorchScript.
[[nodiscard]] Loss run_loss(const std::string& name, double label_smoothing,
                            const std::string& script);

}  // namespace rubato
