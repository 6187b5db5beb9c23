#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "csv_options.hpp"

namespace rubato {

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
  Decimal decimal = Decimal::point;
  bool has_header = true;
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
