#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <rubato/numbers/rule.hpp>

namespace rubato {

/// The origin of rates to be checked, for messages.
struct RatesContext {
  std::string_view rule;
  /// The step, as people count.
  std::string place;
  std::size_t groups = 1;
  std::size_t layers = 1;
};

/// Throws Error, naming the rule, the place and the number, if the rates cannot be applied: one is
/// negative or not finite, or the number of factors is not that of groups or tensors.
void require_applicable(const Rates& rates, const RatesContext& context);

/// Throws Error if a rate that an observer sets (Training::set_learning_rate()) is negative or not
/// finite.
void require_applicable_rate(double rate);

/// Throws Error if the factor of the schedule at `place` is negative or not finite.
void require_applicable(double schedule_factor, std::string_view schedule, std::string_view place);

}  // namespace rubato
