#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "loop/data/data_files.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace rubato::test {

/// The input of a sample, as a trainer gets it.
inline std::vector<float> input_of(const DataSets& data, const SampleSet& set, std::int64_t i) {
  std::vector<float> values(static_cast<std::size_t>(set.inputs.elements()));
  InputReader(data).read(set.input(i), values.data());
  return values;
}

/// The tokens of row i.
inline std::vector<std::int64_t> tokens_of(const SampleRows& rows, std::int64_t i) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(rows.elements()));
  read_numbers(rows.type(), rows.row(i), values.data());
  return values;
}

/// A test with a folder of its own for tables.
class TableFiles : public testing::Test {
 protected:
  DataSets read(const std::string& table, const CsvOptions& options = {}) const {
    DataSets data = read_csv_samples(folder_.write("table.csv", table), options);
    normalise(data);
    return data;
  }
  std::string error(const std::string& table, const CsvOptions& options = {}) const {
    return error_of([&] { return read(table, options); });
  }

  TempFolder folder_;
};

}  // namespace rubato::test
