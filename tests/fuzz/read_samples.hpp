#pragma once

#include <cstdint>
#include <vector>

#include "base/core/check.hpp"
#include "loop/data/sample_set.hpp"

namespace rubato::fuzz {

/// Reads each sample of a data set, as a training would.
inline void read_samples(DataSets data) {
  if (data.train.size() > 3) hold_out(data, 0.3, 1);
  normalise(data);
  const InputReader reader(data);
  for (const SampleSet* const set : {&data.train, data.test ? &*data.test : &data.train}) {
    std::vector<float> inputs(static_cast<std::size_t>(set->inputs.elements()));
    std::vector<double> targets(static_cast<std::size_t>(set->targets.elements()));
    for (std::int64_t i = 0; i < set->size(); ++i) {
      reader.read(set->input(i), inputs.data());
      read_numbers(set->targets.type(), set->target(i), targets.data());
      for (const double target : targets) {
        RUBATO_CHECK(
            data.classes == 0 || (target >= 0 && target < static_cast<double>(data.classes)),
            "targets are classes that there are");
      }
    }
  }
}

}  // namespace rubato::fuzz
