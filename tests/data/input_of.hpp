#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "loop/data/data_files.hpp"

namespace rubato::test {

/// The input of a sample, as a trainer gets it.
inline std::vector<float> input_of(const DataSets& data, const SampleSet& set, std::int64_t i) {
  std::vector<float> values(static_cast<std::size_t>(set.inputs.elements()));
  InputReader(data).read(set.input(i), values.data());
  return values;
}

}  // namespace rubato::test
