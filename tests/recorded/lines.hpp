#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace rubato::test {

/// A line of metrics.jsonl, with its end: a step of 64 samples on two cores, one of which has
/// nothing to do, that took half a second.
inline std::string step_line(std::int64_t step, std::int64_t epoch, double loss = 1,
                             double seconds = 0.5) {
  return fmt::format(
      R"({{"kind":"step","step":{},"epoch":{},"batch":64,"cores":2,"scale":1.0,"lr":0.25,"gain":1.5,)"
      R"("iterations":{},"loss":{},"substeps":[1,0],"seconds":{{"wall":{}}}}})"
      "\n",
      step, epoch, 1.5 * static_cast<double>(step + 1), loss, seconds);
}

/// That of an epoch of so many steps.
inline std::string epoch_line(std::int64_t epoch, std::int64_t steps, double accuracy) {
  return fmt::format(
      R"({{"kind":"epoch","epoch":{},"steps":{},"samples":{},"train_loss":1.0,"test_loss":0.5,)"
      R"("test_accuracy":{},"seconds":{{"train":1.0,"test":0.5}}}})"
      "\n",
      epoch, steps, 64 * steps, accuracy);
}

}  // namespace rubato::test
