#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/steps/step_source.hpp>

#include "base/core/text/hour.hpp"

namespace rubato {

namespace {

void require_positive(std::string_view what, const std::optional<double>& value) {
  if (!value || (*value > 0 && std::isfinite(*value))) return;
  throw Error(fmt::format("{} {}: accepted are values above 0", *value, what));
}

}  // namespace

std::optional<double> Budget::seconds() const {
  if (!hours) return std::nullopt;
  return *hours * kSecondsOfHour;
}

void require_valid(const Budget& budget) {
  require_positive("iterations", budget.iterations);
  if (budget.samples && *budget.samples < 1) {
    throw Error(fmt::format("{} samples to train: at least 1 is needed", *budget.samples));
  }
  require_positive("hours", budget.hours);
  require_positive("units of money", budget.money);
}

std::string to_text(const Budget& budget) {
  std::string text;
  const auto put = [&text](std::string_view what, const auto& value) {
    if (value) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, *value);
  };
  put("iterations", budget.iterations);
  put("samples", budget.samples);
  put("hours", budget.hours);
  put("money", budget.money);
  return text;
}

std::string reached(const Budget& budget, const Spent& spent) {
  if (budget.iterations && spent.iterations >= *budget.iterations) {
    return fmt::format("{:.6g} iterations reached", *budget.iterations);
  }
  if (budget.samples && spent.samples >= *budget.samples) {
    return fmt::format("{} samples reached", *budget.samples);
  }
  if (!spent.time) return {};
  if (budget.hours && spent.time->seconds >= *budget.seconds()) {
    return fmt::format("{:.6g} hours of the clock reached", *budget.hours);
  }
  if (budget.money && spent.time->money >= *budget.money) {
    return fmt::format("{:.6g} of money reached", *budget.money);
  }
  return {};
}

double share_spent(const Budget& budget, const Spent& spent) {
  double share = 0;
  const auto of = [&share](double reached, double limit) {
    share = std::clamp(reached / limit, share, 1.0);
  };
  if (budget.iterations) of(spent.iterations, *budget.iterations);
  if (budget.samples) {
    of(static_cast<double>(spent.samples), static_cast<double>(*budget.samples));
  }
  if (budget.hours && spent.time) of(spent.time->seconds, *budget.seconds());
  if (budget.money && spent.time) of(spent.time->money, *budget.money);
  return share;
}

}  // namespace rubato
