#pragma once

#include <rubato/loop/trainer.hpp>

namespace rubato {

/// The options with their defaults filled in. Throws Error for one out of its range; those that
/// belong to a rule, a schedule, an optimizer or the plan are checked by these.
[[nodiscard]] TrainOptions checked_options(TrainOptions options);

}  // namespace rubato
