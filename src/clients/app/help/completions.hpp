#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/spec.hpp>

#include "help.hpp"

namespace rubato::app {

/// The kind of file names that complete a word.
enum class Paths { none, folders, files };

/// The completions of a word.
struct Completions {
  struct Candidate {
    /// The whole word. If it ends in ':' or '=', more has to follow.
    std::string word{};
    std::string help{};

    friend bool operator==(const Candidate&, const Candidate&) = default;
  };

  /// The candidates that begin with the word.
  std::vector<Candidate> candidates{};
  /// The file names that complete the word as well. They follow `before`, the part of the word that
  /// is not a path.
  Paths paths = Paths::none;
  std::string before{};
};

/// Completes the last of `words`, which follow the name of `command`. Everything is derived from
/// the help of the commands (help_of()) and from the names that `rubato list` prints.
[[nodiscard]] Completions completions(const Command& command, std::span<const std::string> words);

/// Formats completions for the scripts of the shells. Each candidate is a line of a word, a tab and
/// its help; paths are a line ":files " or ":folders ", followed by the text before the path.
[[nodiscard]] std::string lines_of(const Completions& completions);

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
