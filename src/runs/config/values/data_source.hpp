#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/spec.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "loop/data/files/data_files.hpp"

namespace rubato {

struct Extensions;     // runs/run_configuration.hpp
struct OwnDataSource;  // loop/images.hpp

using OwnDataSources = Additions<OwnDataSource>;

/// What --data accepts.
[[nodiscard]] std::vector<Strategy> data_sources();
/// The names of these, without those of published data sets (loop/data/published_data.hpp), and
/// with them.
[[nodiscard]] std::vector<std::string_view> data_names();
[[nodiscard]] std::vector<std::string_view> all_data_names();

/// What --data names. Parsed<DataSource> throws Error for text that names no data set: "digits"
/// (built in), "mnist" and its like in the user's cache, and "mnist:DIR" and its like, which may
/// have arguments behind them, "csv:FILE,label=NAME". It looks at the file system only for a hint.
struct DataSource {
  /// "digits", "mnist", "cifar10", "tensors", "images", "csv" or "text"; kOwn, of which nothing is
  /// read; the name of one of the user's own, which has no path.
  std::string kind{};
  /// The file or folder; empty for the built-in digits.
  std::filesystem::path path{};
  /// Of a published data set (loop/data/published_data.hpp), its name; empty for all others.
  std::string_view known{};
  /// Of a table, and its member `standardise` of tensors.
  CsvOptions csv{};
  TensorOptions tensors{};
  /// Of a text: characters of a sample.
  std::int64_t length = 0;
};

/// The text with each of its files and folders mapped by `map`; of data of the user's own, none.
[[nodiscard]] std::string map_data(
    const std::string& text,
    const std::function<std::filesystem::path(const std::filesystem::path&)>& map);

/// Throws Error where a file or folder of the data is not there.
void require_data_files(const DataSource& source);

/// "mnist:DIR" for that folder.
[[nodiscard]] std::string mnist_data(const std::filesystem::path& folder);

}  // namespace rubato
