#pragma once

#include <string>
#include <vector>

#include "clients/app/help/commands.hpp"

namespace rubato::app {

/// A manual page of section 1.
struct ManPage {
  /// The name of the page, such as "rubato-train".
  std::string name{};
  /// The page in troff, with the macros of the package man.
  std::string text{};
};

/// The page of a command, made from its help (help_of()).
[[nodiscard]] ManPage man_page(const Command& command);

/// The pages of `command` and of all commands below it.
[[nodiscard]] std::vector<ManPage> man_pages(const Command& command);

}  // namespace rubato::app
