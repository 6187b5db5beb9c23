#pragma once

#include <span>
#include <string_view>

#include <rubato/core/family.hpp>

namespace rubato {

/// Every strategy that an option of a run takes by name, family by family: models, losses, data,
/// traces, generators and policies of availability, rules, schedules, optimizers, initializers,
/// precisions, reducers and all-reduce algorithms. Traces and generators are of one option, as are
/// reducers and algorithms. The same for the whole life of the process.
[[nodiscard]] std::span<const Family> families();

/// The family of that name, or of its singular: "rules", "rule". Throws Error for an unknown one,
/// naming the nearest.
[[nodiscard]] const Family& family(std::string_view name);

}  // namespace rubato
