#pragma once

#include <span>
#include <string_view>

namespace rubato::app {

/// A shell that can complete the arguments of programs.
struct Shell {
  std::string_view name{};
  /// The script that makes the shell complete rubato; it calls `rubato completion -- WORDS`.
  std::string_view script{};
  /// The file in which the script is installed, relative to the folder `share`.
  std::string_view installed{};
};

[[nodiscard]] std::span<const Shell> shells();

}  // namespace rubato::app
