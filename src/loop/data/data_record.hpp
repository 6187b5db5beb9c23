#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loop/data/tables/table_encoding.hpp"
#include "sample_set.hpp"

namespace rubato {

/// The properties of the data on which a model was trained, as needed to use the model on other
/// data. A run keeps them in its folder, as JSON.
struct DataRecord {
  /// The kind of --data: "csv".
  std::string kind{};
  InputKind inputs = InputKind::reals;
  /// The shape of an input, and that of a target.
  std::vector<std::int64_t> shape{};
  std::vector<std::int64_t> target_shape{};
  /// The following are the same as in DataSets.
  std::int64_t classes = 0;
  std::int64_t vocabulary = 0;
  std::vector<PixelStatistics> channels{};
  std::vector<FeatureStatistics> features{};
  /// The characters of a text in the order of their tokens, in UTF-8.
  std::string alphabet{};
  /// The names of the classes of a folder of images.
  std::vector<std::string> class_names{};
  /// The encoding, if the data are a table.
  std::shared_ptr<const TableEncoding> table{};
};

/// Describes normalised data sets; `kind` is that of --data.
[[nodiscard]] DataRecord record_of(const DataSets& data, std::string_view kind);

[[nodiscard]] std::string to_json(const DataRecord& record);
/// Messages name the file as `source`. Throws Error for any other text.
[[nodiscard]] DataRecord parse_data_record(std::string_view json, const std::string& source);

}  // namespace rubato
