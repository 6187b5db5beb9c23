#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <rubato/base/parse.hpp>

namespace rubato {

/// The contents of the column of labels.
enum class CsvTargets { automatic, classes, numbers };

inline constexpr std::array<Choice<CsvTargets>, 3> kCsvTargets{{{CsvTargets::automatic, "auto"},
                                                                {CsvTargets::classes, "classes"},
                                                                {CsvTargets::numbers, "numbers"}}};

/// The type of a column's fields.
enum class ColumnKind { numbers, categories };

inline constexpr std::array<Choice<ColumnKind>, 2> kColumnKinds{
    {{ColumnKind::numbers, "number"}, {ColumnKind::categories, "category"}}};

/// The treatment of a field without a value.
enum class MissingValues {
  refuse,
  /// Replaced by the mean of the column in the training rows; in a column of categories, by none.
  mean,
  /// The row is left out.
  drop
};

inline constexpr std::array<Choice<MissingValues>, 3> kMissingValues{
    {{MissingValues::refuse, "error"},
     {MissingValues::mean, "mean"},
     {MissingValues::drop, "drop"}}};

/// The character that separates the fraction of a number.
enum class Decimal { point, comma };

inline constexpr std::array<Choice<Decimal>, 2> kDecimals{
    {{Decimal::point, "point"}, {Decimal::comma, "comma"}}};

/// The treatment of the first line of a table.
enum class TableHeader {
  /// It names the columns; a line that looks like data is refused.
  automatic,
  yes,
  /// It is data; the columns are called 1, 2 and so on.
  no
};

inline constexpr std::array<Choice<TableHeader>, 3> kTableHeaders{
    {{TableHeader::automatic, "auto"}, {TableHeader::yes, "yes"}, {TableHeader::no, "no"}}};

/// How a table is written.
struct TableFormat {
  /// The text between fields, as split_csv() takes it; empty for the usual_separator() of the first
  /// line, or what a line such as "sep=;" before it says.
  std::string separator{};
  /// The text with which lines begin that are not part of the table; empty for none.
  std::string comment{};
  Decimal decimal = Decimal::point;
  bool has_header = true;
};

/// The treatment of a category that the training table does not have.
enum class UnseenCategories {
  refuse,
  /// It is none of the column's categories: all of its features are 0.
  missing
};

inline constexpr std::array<Choice<UnseenCategories>, 2> kUnseenCategories{
    {{UnseenCategories::refuse, "error"}, {UnseenCategories::missing, "missing"}}};

/// Options for reading a table.
struct CsvOptions {
  /// The name of the column of labels; empty is the last one.
  std::string label{};
  /// A table with the same columns to test on.
  std::optional<std::filesystem::path> test{};
  /// True to transform number columns to mean 0 and deviation 1 of the training set.
  bool standardise = false;
  /// If automatic: numbers if one of them has a fraction, else classes.
  CsvTargets targets = CsvTargets::automatic;
  /// Types of columns by name; the fields of the other columns determine theirs.
  std::map<std::string, ColumnKind> types{};
  MissingValues missing = MissingValues::refuse;
  Decimal decimal = Decimal::point;
  TableHeader header = TableHeader::automatic;
  /// Names of columns that are left out; a name with a slash may be divided into several elements.
  std::vector<std::string> ignore{};
  /// The column with the weights of the rows, which has to be left out of the features; empty for
  /// none.
  std::string weights{};
  /// Members of TableFormat; an empty separator is found in the file (found_separator()).
  std::string separator{};
  std::string comment{};
  /// The texts that stand for a missing value; empty for the usual ones (is_missing()).
  std::vector<std::string> missing_words{};
};

/// The encoding of a column's fields: a number, or one of some categories.
struct TableColumn {
  std::string name{};
  ColumnKind kind = ColumnKind::numbers;
  /// The different texts. Features are one-hot over these; a label's class is its index.
  std::vector<std::string> categories{};
};

/// The rule by which the rows of a table become samples.
struct TableEncoding {
  /// The table from which it was learned.
  std::string source{};
  std::vector<TableColumn> columns{};
  /// The column of the targets: classes if it has categories, else real numbers.
  std::size_t label = 0;
  /// True if the classes are numbers, so that "1.0" is the class "1".
  bool label_by_value = false;
  MissingValues missing = MissingValues::refuse;
  /// CsvOptions::missing_words.
  std::vector<std::string> missing_words{};
  TableFormat format{};
  /// Additional columns that a table may have.
  std::vector<std::string> ignored{};
  /// The rows of the table from which it was learned, without those that are left out.
  std::int64_t rows = 0;

  /// The number of classes; 0 if targets are real numbers.
  [[nodiscard]] std::int64_t classes() const;
  [[nodiscard]] std::int64_t features() const;
  /// The number of feature columns of a kind.
  [[nodiscard]] std::int64_t columns_of(ColumnKind kind) const;
  /// The column of each feature.
  [[nodiscard]] std::vector<std::size_t> columns_of_features() const;
};

/// Learns the encoding from a table. A column is one of numbers if all of its fields are, or if the
/// options say so, and otherwise one of categories in the order of their bytes; classes that are
/// numbers are in the order of the numbers. Throws Error with file and line also if most fields of
/// a column are numbers and some are not, if its texts look like numbers, if most of many texts
/// differ, or if the first line looks like data.
[[nodiscard]] TableEncoding learn_encoding(const std::filesystem::path& file,
                                           const CsvOptions& options);

}  // namespace rubato
