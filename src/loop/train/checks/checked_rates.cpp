#include "checked_rates.hpp"

#include <cmath>
#include <span>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "loop/train/step/place.hpp"

namespace rubato {

namespace {

bool is_applicable(double number) {
  return std::isfinite(number) && number >= 0;
}

void require_number(double number, std::string_view what, const RatesContext& context) {
  if (is_applicable(number)) return;
  throw Error(fmt::format("rule {} gave the {} {} at {}; accepted: finite numbers of at least 0",
                          context.rule, what, in_words(number), context.place));
}

void require_factors(std::span<const double> factors, std::size_t count, std::string_view of,
                     const RatesContext& context) {
  if (!factors.empty() && factors.size() != count) {
    throw Error(fmt::format("rule {} gave {} factor{} for {} {}{} at {}; accepted: {} or none",
                            context.rule, factors.size(), factors.size() == 1 ? "" : "s", count, of,
                            count == 1 ? "" : "s", context.place, count));
  }
  for (const double factor : factors) {
    require_number(factor, fmt::format("factor of a {}", of), context);
  }
}

}  // namespace

void require_applicable(const Rates& rates, const RatesContext& context) {
  require_number(rates.learning_rate, "learning rate", context);
  require_number(rates.update_rate, "rate of the update", context);
  require_number(rates.weight_decay_factor, "factor on the weight decay", context);
  require_number(rates.gain, "gain", context);
  require_factors(rates.group_factors, context.groups, "parameter group", context);
  require_factors(rates.layer_factors, context.layers, "parameter tensor", context);
}

void require_applicable_rate(double rate) {
  if (is_applicable(rate)) return;
  throw Error(
      fmt::format("learning rate {}: accepted are finite numbers of at least 0", in_words(rate)));
}

void require_applicable(double schedule_factor, std::string_view schedule, std::string_view place) {
  if (is_applicable(schedule_factor)) return;
  throw Error(
      fmt::format("schedule {} gave the factor {} at {}; accepted: finite numbers of at "
                  "least 0",
                  schedule, in_words(schedule_factor), place));
}

}  // namespace rubato
