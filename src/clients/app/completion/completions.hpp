#pragma once

#include <span>
#include <string>
#include <vector>

#include "clients/app/help/commands.hpp"

namespace rubato::app {

/// Names of files that may stand in a place.
enum class Paths { none, folders, files };

/// What may stand in the place of a word that is not complete yet.
struct Completions {
  struct Candidate {
    /// The whole word. Where it ends with ':' or '=', more has to follow it.
    std::string word{};
    std::string help{};

    friend bool operator==(const Candidate&, const Candidate&) = default;
  };

  /// Those that begin as the word does.
  std::vector<Candidate> candidates{};
  /// Which files may stand there as well: behind `before`, the part of the word that is no path.
  Paths paths = Paths::none;
  std::string before{};
};

/// What completes the last of `words`, which stand behind the name of `command`: all follows from
/// what its commands say of themselves (help_of()), and from the names that `rubato list` prints.
[[nodiscard]] Completions completions(const Command& command, std::span<const std::string> words);

/// A line for each, as the scripts of the shells read them: a word, a tab and its help; or ":files
/// " or ":folders ", and what stands before the path.
[[nodiscard]] std::string lines_of(const Completions& completions);

}  // namespace rubato::app
