#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <rubato/base/parse.hpp>

namespace rubato {

/// What the column of labels holds.
enum class CsvTargets { automatic, classes, numbers };

inline constexpr std::array<Choice<CsvTargets>, 3> kCsvTargets{{{CsvTargets::automatic, "auto"},
                                                                {CsvTargets::classes, "classes"},
                                                                {CsvTargets::numbers, "numbers"}}};

/// What the fields of a column are.
enum class ColumnKind { numbers, categories };

inline constexpr std::array<Choice<ColumnKind>, 2> kColumnKinds{
    {{ColumnKind::numbers, "number"}, {ColumnKind::categories, "category"}}};

/// What becomes of a field without a value.
enum class MissingValues {
  refuse,
  /// The mean of the column in the rows that are trained on; in a column of categories, none.
  mean,
  /// The row is left out.
  drop
};

inline constexpr std::array<Choice<MissingValues>, 3> kMissingValues{
    {{MissingValues::refuse, "error"},
     {MissingValues::mean, "mean"},
     {MissingValues::drop, "drop"}}};

/// This character separates the fraction of a number.
enum class Decimal { point, comma };

inline constexpr std::array<Choice<Decimal>, 2> kDecimals{
    {{Decimal::point, "point"}, {Decimal::comma, "comma"}}};

/// This says whether the first line of a table names the columns.
enum class TableHeader {
  /// It does; what looks like data is refused.
  automatic,
  yes,
  /// It is data; the columns are called 1, 2 and so on.
  no
};

inline constexpr std::array<Choice<TableHeader>, 3> kTableHeaders{
    {{TableHeader::automatic, "auto"}, {TableHeader::yes, "yes"}, {TableHeader::no, "no"}}};

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
  /// Of columns by their names; what the others are their fields say.
  std::map<std::string, ColumnKind> types{};
  MissingValues missing = MissingValues::refuse;
  Decimal decimal = Decimal::point;
  TableHeader header = TableHeader::automatic;
  /// Names of columns that are left out; one with a slash may be in several parts.
  std::vector<std::string> ignore{};
};

}  // namespace rubato
