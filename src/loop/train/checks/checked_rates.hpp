#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <rubato/numbers/rule.hpp>

namespace rubato {

/// Whose rates are to be checked, and what they are for.
struct RatesContext {
  std::string_view rule;
  /// The step, for people.
  std::string place;
  std::size_t groups = 1;
  std::size_t layers = 1;
};

/// Throws Error, naming the rule, the place and the number, where the rates cannot be applied: one
/// is negative or not finite, or there are factors, but not one for each group or tensor.
void require_applicable(const Rates& rates, const RatesContext& context);

/// Throws Error when a rate that an observer sets (Training::set_learning_rate()) is negative or
/// not finite.
void require_applicable_rate(double rate);

/// Throws Error when the factor of the schedule at `place` is negative or not finite.
void require_applicable(double schedule_factor, std::string_view schedule, std::string_view place);

}  // namespace rubato
