#pragma once

namespace rubato::app {

/// What the programs answer the shell. 21 is the original's.
enum class ExitCode {
  good = 0,
  /// A bug, or something the program knows no name for.
  internal = 1,
  /// A mistake in the options or files; nothing was trained.
  usage = 2,
  /// The final test accuracy is below --target-accuracy.
  target_missed = 21,
  /// The loss or the gradient became NaN or infinite.
  diverged = 22,
};

}  // namespace rubato::app
