#pragma once

#include <string>

#include "base/core/text/wrapped.hpp"
#include "command_help.hpp"

namespace rubato::app {

/// The text that --help prints, in lines of at most 80 columns, or fewer on a narrow terminal: the
/// options by group, each with its value, meaning and default.
[[nodiscard]] std::string help_text(const CommandHelp& help, LineWidth width);

/// A line of the footer, and whether it is an example. Consecutive lines of prose are joined.
struct FooterLine {
  bool is_example = false;
  std::string text{};
};
[[nodiscard]] std::vector<FooterLine> footer_lines(const std::string& footer);

/// The arguments in the usage line: "[RUN] [OPTIONS]".
[[nodiscard]] std::string usage_of(const CommandHelp& help);

}  // namespace rubato::app
