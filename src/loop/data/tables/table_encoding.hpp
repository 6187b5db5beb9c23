#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "csv_options.hpp"

namespace rubato {

/// What the fields of a column become: a number, or one of some categories.
struct TableColumn {
  std::string name{};
  ColumnKind kind = ColumnKind::numbers;
  /// The different texts. Of a feature, which of them a field is sets one number to 1; of the label
  /// the place here is the class.
  std::vector<std::string> categories{};
};

/// How the rows of a table become samples.
struct TableEncoding {
  /// The table that it was learned from.
  std::string source{};
  std::vector<TableColumn> columns{};
  /// The column of the targets: classes where it has categories, else real numbers.
  std::size_t label = 0;
  /// Whether the classes are numbers, so that "1.0" is the class "1".
  bool label_by_value = false;
  MissingValues missing = MissingValues::refuse;
  Decimal decimal = Decimal::point;
  bool has_header = true;
  /// Columns that a table may have besides.
  std::vector<std::string> ignored{};
  /// In the table that it was learned from, without those that are left out.
  std::int64_t rows = 0;

  /// 0 where targets are real numbers.
  [[nodiscard]] std::int64_t classes() const;
  [[nodiscard]] std::int64_t features() const;
  /// How many columns of features there are of a kind.
  [[nodiscard]] std::int64_t columns_of(ColumnKind kind) const;
  /// Of each feature the column that it is of.
  [[nodiscard]] std::vector<std::size_t> columns_of_features() const;
};

/// What a table says of its columns: a column is one of numbers where all of its fields are, or
/// where the options say so, and otherwise of categories in the order of their bytes; classes that
/// are numbers are in the order of the numbers. Throws Error with file and line also where most
/// fields of a column are numbers and some are not, where its texts look like numbers, where most
/// of many texts differ, and where the first line looks like data.
[[nodiscard]] TableEncoding learn_encoding(const std::filesystem::path& file,
                                           const CsvOptions& options);

}  // namespace rubato
