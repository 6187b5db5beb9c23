#pragma once

#include <span>
#include <string_view>

namespace rubato::app {

/// A shell that can complete the arguments of programs.
struct Shell {
  std::string_view name{};
  /// The script that makes it do so for rubato: it asks `rubato completion -- WORDS`.
  std::string_view script{};
  /// Where the script is installed, below the folder `share`.
  std::string_view installed{};
};

[[nodiscard]] std::span<const Shell> shells();

}  // namespace rubato::app
