#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace rubato::app {

/// Prints --help in lines of at most 80 columns, or fewer on a narrow terminal: options by group,
/// in the order of their definition, each with its value, what it means and its default.
class HelpFormatter : public CLI::FormatterBase {
 public:
  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name,
                                      CLI::AppFormatMode mode) const override;
};

}  // namespace rubato::app
