#pragma once

#include <string>

#include "base/core/text/wrapped.hpp"
#include "command_help.hpp"

namespace rubato::app {

/// What --help prints: in lines of at most 80 columns, or fewer on a narrow terminal, options by
/// group, each with its value, what it means and its default.
[[nodiscard]] std::string help_text(const CommandHelp& help, LineWidth width);

/// The footer, line by line: whether the line is an example, and its text. Lines of running text
/// that follow each other are one.
struct FooterLine {
  bool is_example = false;
  std::string text{};
};
[[nodiscard]] std::vector<FooterLine> footer_lines(const std::string& footer);

/// How it is called: "[RUN] [OPTIONS]".
[[nodiscard]] std::string usage_of(const CommandHelp& help);

}  // namespace rubato::app
