#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato train`: checks the options and the trace, which needs no libtorch, and becomes the
/// program rubato-train, which does. Returns only when the help was printed; throws Error for what
/// the user got wrong, and when there is no rubato-train.
[[nodiscard]] int train_front(std::span<const std::string> arguments);

/// `rubato verify`, in the same way.
[[nodiscard]] int verify_front(std::span<const std::string> arguments);

}  // namespace rubato::app
