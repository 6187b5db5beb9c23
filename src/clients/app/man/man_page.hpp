#pragma once

#include <string>
#include <vector>

#include "clients/app/help/commands.hpp"

namespace rubato::app {

/// A page of the manual.
struct ManPage {
  /// "rubato-train", of section 1.
  std::string name{};
  /// As troff's macros `man` take it.
  std::string text{};
};

/// The page of a command, from what it says of itself (help_of()).
[[nodiscard]] ManPage man_page(const Command& command);

/// That of `command` and those of all commands below it.
[[nodiscard]] std::vector<ManPage> man_pages(const Command& command);

}  // namespace rubato::app
