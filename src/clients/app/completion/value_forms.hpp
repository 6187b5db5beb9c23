#pragma once

#include <string>
#include <vector>

#include <rubato/base/spec.hpp>

#include "clients/app/help/command_help.hpp"
#include "completions.hpp"

namespace rubato::app {

/// One way to write a value: a word ("digits"), a word that a path follows ("csv:", files), or a
/// path alone.
struct ValueForm {
  std::string word{};
  std::string help{};
  Paths paths = Paths::none;
  /// Files complete the value only if it contains this text ("/checkpoints/"), else folders do.
  std::string within{};
  /// The arguments that may follow the word and a ':', separated by commas.
  std::vector<Argument> arguments{};
};

/// The ways to write a value of an option: those that its help lists ("shuffle|in-order",
/// "FILE|RUN"), and the names that it takes (`rubato list`).
[[nodiscard]] std::vector<ValueForm> value_forms(const OptionHelp& option);

}  // namespace rubato::app
