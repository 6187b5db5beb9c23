#pragma once

#include <rubato/loop/trainer.hpp>

namespace rubato {

/// Returns the options with their defaults filled in. Throws Error for one out of range; options of
/// a rule, a schedule, an optimizer or the plan are checked by these.
[[nodiscard]] TrainOptions checked_options(TrainOptions options);

}  // namespace rubato
