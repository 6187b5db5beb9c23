#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace rubato::app {

/// `rubato train`: checks the options and the trace, and trains what needs no libtorch; for what
/// does, it becomes the program rubato-train and does not return. Returns the exit code; throws
/// Error for what the user got wrong, and when there is no rubato-train.
[[nodiscard]] int train_front(std::span<const std::string> arguments);

/// `rubato verify` and `rubato calibrate`, in the same way.
[[nodiscard]] int verify_front(std::span<const std::string> arguments);
[[nodiscard]] int calibrate_front(std::span<const std::string> arguments);

/// `rubato eval` and `rubato predict`: check the options, and become rubato-train.
[[nodiscard]] int evaluate_front(std::span<const std::string> arguments);
[[nodiscard]] int predict_front(std::span<const std::string> arguments);

/// The arguments, in which a --config that is no file (a pipe, /dev/stdin) names what it said: kept
/// in memory, it can be read again, by the programs that this one starts, or becomes, too. Throws
/// Error where it cannot be read.
[[nodiscard]] std::vector<std::string> with_kept_configuration(
    std::span<const std::string> arguments);

/// The program rubato-train: beside this one, where a build leaves it, or where an installation
/// puts it. Throws Error when there is none.
[[nodiscard]] std::filesystem::path train_program();

}  // namespace rubato::app
