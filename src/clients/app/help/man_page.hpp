#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "help.hpp"

namespace rubato::app {

/// Escapes text for troff, so that it is printed literally.
[[nodiscard]] std::string troff(std::string_view text);
[[nodiscard]] std::string troff_bold(std::string_view text);
[[nodiscard]] std::string troff_italic(std::string_view text);

/// The same, with --options and text in `backticks` in bold.
[[nodiscard]] std::string troff_prose(std::string_view text);

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
