#pragma once

#include <span>
#include <string>
#include <vector>

#include "clients/app/help/commands.hpp"

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

}  // namespace rubato::app
