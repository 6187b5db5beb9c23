#pragma once

#include <string>
#include <vector>

#include "clients/app/help/command_help.hpp"
#include "completions.hpp"

namespace rubato::app {

/// One way to write a value: a word ("digits"), a word that a path follows ("csv:", files), or a
/// path alone.
struct ValueForm {
  std::string word{};
  std::string help{};
  Paths paths = Paths::none;
};

/// The ways to write the value of an option, or one of several: those that the help lists
/// ("shuffle|in-order", "FILE|RUN"), and the names that the option takes (`rubato list`).
[[nodiscard]] std::vector<ValueForm> value_forms(const OptionHelp& option);

}  // namespace rubato::app
