#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace rubato::app {

/// `rubato train`: checks the options and the trace, and trains models that need no libtorch. For
/// others it becomes the program rubato-train, and does not return. Returns the exit code; throws
/// Error for a mistake of the user, and if there is no rubato-train.
[[nodiscard]] int train_front(std::span<const std::string> arguments);

/// `rubato verify` and `rubato calibrate`, in the same way.
[[nodiscard]] int verify_front(std::span<const std::string> arguments);
[[nodiscard]] int calibrate_front(std::span<const std::string> arguments);

/// `rubato eval` and `rubato predict`, which check the options and become rubato-train.
[[nodiscard]] int evaluate_front(std::span<const std::string> arguments);
[[nodiscard]] int predict_front(std::span<const std::string> arguments);

/// Replaces a --config that is not a regular file (a pipe, /dev/stdin) by a copy in memory, which
/// can be read again, also by programs that this one starts or becomes. Throws Error if it cannot
/// be read.
[[nodiscard]] std::vector<std::string> with_kept_configuration(
    std::span<const std::string> arguments);

/// The file of the program rubato-train: beside this program in a build, or where an installation
/// puts it. Throws Error if there is none.
[[nodiscard]] std::filesystem::path train_program();

}  // namespace rubato::app
