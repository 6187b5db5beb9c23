#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>

#include <rubato/core/choice.hpp>

namespace rubato {

/// What the column of labels holds.
enum class CsvTargets { automatic, classes, numbers };

inline constexpr std::array<Choice<CsvTargets>, 3> kCsvTargets{{{CsvTargets::automatic, "auto"},
                                                                {CsvTargets::classes, "classes"},
                                                                {CsvTargets::numbers, "numbers"}}};

/// How a table is read.
struct CsvOptions {
  /// The name of the column of labels; empty is the last one.
  std::string label{};
  /// A table with the same columns to test on.
  std::optional<std::filesystem::path> test{};
  /// Whether number columns become of mean 0 and deviation 1, by those of the training set.
  bool standardise = false;
  /// Automatic: numbers where one of them has a fraction, else classes.
  CsvTargets targets = CsvTargets::automatic;
};

}  // namespace rubato
