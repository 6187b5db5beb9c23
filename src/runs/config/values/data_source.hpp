#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/spec.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "base/core/file.hpp"
#include "loop/data/data_files.hpp"

namespace rubato {

struct Extensions;     // runs/run_configuration.hpp
struct OwnDataSource;  // loop/images.hpp

using OwnDataSources = Additions<OwnDataSource>;

/// The values that --data accepts.
[[nodiscard]] std::vector<Strategy> data_sources();
/// Their names as there is room for in a line of help, without "sentences" and published data sets
/// (loop/data/published_data.hpp); and all of them.
[[nodiscard]] std::vector<std::string_view> data_names();
[[nodiscard]] std::vector<std::string_view> all_data_names();

/// The data set that --data names. Parsed<DataSource> throws Error for text that names no data set:
/// "digits" (built in), "mnist" and the like in the user's cache, and "mnist:DIR" and the like,
/// which arguments may follow, as in "csv:FILE,label=NAME". It uses the file system only for hints.
struct DataSource {
  /// One of "digits", "mnist", "cifar10", "tensors", "images", "csv", "text" and "sentences"; kOwn,
  /// of which nothing is read; or the name of one of the user's own, which has no path.
  std::string kind{};
  /// The file or folder; empty for the built-in digits.
  std::filesystem::path path{};
  /// The name of a published data set (loop/data/published_data.hpp); empty for all others.
  std::string_view known{};
  /// Options of a table; `standardise` applies to tensors, too.
  CsvOptions csv{};
  TensorOptions tensors{};
  /// Options of a text and of sentences.
  TextOptions text{};
  SentenceOptions sentences{};
};

/// The text with each of its files and folders mapped by `map`; data of the user's own have none.
[[nodiscard]] std::string map_data(const std::string& text, const PathMap& map);

/// Throws Error if a file or folder of the data does not exist.
void require_data_files(const DataSource& source);

}  // namespace rubato
