#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loop/data/tables/table_encoding.hpp"
#include "sample_set.hpp"

namespace rubato {

/// What has to be known of the data that a model was trained on, in order to use it on others: a
/// run keeps it in its folder, as JSON.
struct DataRecord {
  /// The kind of --data: "csv".
  std::string kind{};
  InputKind inputs = InputKind::reals;
  /// Of an input and of a target.
  std::vector<std::int64_t> shape{};
  std::vector<std::int64_t> target_shape{};
  /// As DataSets has them.
  std::int64_t classes = 0;
  std::int64_t vocabulary = 0;
  std::vector<PixelStatistics> channels{};
  std::vector<FeatureStatistics> features{};
  /// The characters of a text in the order of their tokens, in UTF-8.
  std::string alphabet{};
  /// The classes of a folder of images have these names.
  std::vector<std::string> class_names{};
  /// Of a table.
  std::shared_ptr<const TableEncoding> table{};
};

/// Of data sets that are normalised; `kind` is that of --data.
[[nodiscard]] DataRecord record_of(const DataSets& data, std::string_view kind);

[[nodiscard]] std::string to_json(const DataRecord& record);
/// `source` stands for the file in messages. Throws Error for what is no such record.
[[nodiscard]] DataRecord parse_data_record(std::string_view json, const std::string& source);

}  // namespace rubato
