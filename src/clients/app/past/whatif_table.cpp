// The answer consists of the events, a row for each counterfactual below that of the run, the sum
// of the single effects beside the effect of all events together, and the mean and the standard
// deviation (n - 1) of the effects over several orders of the samples. Effects are the run's
// numbers less those of the counterfactual (effect_of()). All cells are texts, and table_of()
// removes the columns in which no row has one; an effect that some order lacks has no mean.

#include "whatif_table.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/core/text/text_table.hpp"
#include "past_commands.hpp"

namespace rubato::app {

namespace {

constexpr double kPercent = 100;
constexpr double kSecondsOfMinute = 60;
constexpr double kSecondsOfHour = 3600;

std::string duration(double seconds) {
  if (seconds < 2 * kSecondsOfMinute) return fmt::format("{:.0f} s", std::ceil(seconds));
  if (seconds < 2 * kSecondsOfHour) return fmt::format("{:.0f} min", seconds / kSecondsOfMinute);
  return fmt::format("{:.1f} h", seconds / kSecondsOfHour);
}

std::string hours_of(const TrainingOutcome& outcome) {
  return outcome.time ? fmt::format("{:.3f}", outcome.time->seconds / kSecondsOfHour) : "";
}

std::string loss_of(const TrainingOutcome& outcome) {
  return std::isfinite(outcome.loss()) ? fmt::format("{:.4f}", outcome.loss())
                                       : std::string(choice_name(kRunEnds, outcome.end));
}

// A column of the answer. It is left out if no row has a text there.
struct AnswerColumn {
  std::string heading;
  std::function<std::string(const TrainingOutcome& outcome)> text;
};

std::vector<AnswerColumn> answer_columns(const WhatIfResult& result) {
  const LearningTarget target = result.target;
  const bool has_clock = result.run.time.has_value();
  return {{"hours", hours_of},
          {"money",
           [](const TrainingOutcome& outcome) {
             return outcome.time && outcome.time->money > 0
                        ? fmt::format("{:.3f}", outcome.time->money)
                        : "";
           }},
          {"substeps",
           [has_clock](const TrainingOutcome& outcome) {
             return has_clock ? "" : fmt::format("{}", outcome.substeps);
           }},
          {"to target",
           [target](const TrainingOutcome& outcome) {
             const auto* const epoch = outcome.reached(target);
             return epoch == nullptr ? "never" : fmt::format("{}", epoch->samples);
           }},
          {result.has_test ? "loss" : "training loss", loss_of},
          {"accuracy", [](const TrainingOutcome& outcome) {
             const auto accuracy = outcome.accuracy();
             return accuracy ? fmt::format("{:.2f} %", kPercent * *accuracy) : "";
           }}};
}

std::string lost_work(const WhatIfResult& result, const Counterfactual& one) {
  const Effect effect = effect_of(result.run, one.outcome, result.target);
  std::int64_t minibatches = 0;
  for (const std::size_t event : one.events) {
    if (const auto& fault = result.events[event].fault) minibatches += fault->minibatches;
  }
  std::string text;
  if (effect.lost_seconds && *effect.lost_seconds != 0) {
    text = fmt::format("{:.4g} s", *effect.lost_seconds);
  }
  if (minibatches > 0) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", counted(minibatches, "minibatch"));
    if (minibatches != 1) text.insert(text.size() - 1, "e");
  }
  return text;
}

std::string step_of(const WhatIfResult& result, const Counterfactual& one) {
  if (one.events.size() != 1) return fmt::format("{}", one.steps + 1);
  return fmt::format("{}", result.events[one.events.front()].steps + 1);
}

std::string label_of(const Counterfactual& one) {
  constexpr std::string_view kWithout = "without ";
  return one.name.starts_with(kWithout) ? one.name.substr(kWithout.size()) : one.name;
}

std::string words_of_target(const LearningTarget& target) {
  return target.accuracy ? fmt::format("an accuracy of {:.2f} %", kPercent * *target.accuracy)
                         : fmt::format("a loss of {:.4f}", target.loss.value_or(0));
}

// The table without the columns that only have a heading.
std::string table_of(std::vector<std::vector<std::string>> rows, LineWidth width) {
  for (std::size_t k = rows[0].size(); k-- > 1;) {
    const bool used =
        std::any_of(rows.begin() + 1, rows.end(), [k](const auto& row) { return !row[k].empty(); });
    if (used) continue;
    for (auto& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(k));
  }
  std::vector<Column> columns(rows[0].size(), Column::right);
  columns.front() = Column::left;
  TextTable table(columns);
  for (auto& row : rows) table.add(std::move(row));
  return table.text(width);
}

// A number of an effect, as people read it.
struct EffectNumber {
  std::string_view name;
  std::string_view format;
  double factor;
  std::optional<double> Effect::*value;
};
const std::vector<EffectNumber>& effect_numbers() {
  static const std::vector<EffectNumber> numbers{
      {"loss", "{:+.4f}", 1, &Effect::loss},
      {"accuracy, points", "{:+.2f}", kPercent, &Effect::accuracy},
      {"samples to the target", "{:+.0f}", 1, &Effect::target_samples},
      {"hours", "{:+.3f}", 1, &Effect::hours},
      {"money", "{:+.3f}", 1, &Effect::money}};
  return numbers;
}

std::string shown(const EffectNumber& number, double value) {
  // A zero has no sign, and neither has what is rounded to one.
  std::string text = fmt::format(fmt::runtime(number.format), number.factor * value);
  const bool is_zero = text.find_first_of("123456789") == std::string::npos;
  return is_zero ? text.substr(1) : text;
}

std::string without_sign(const std::string& text) {
  return text.substr(text.find_first_not_of("+-"));
}

// The sum of the effects of single events beside that of all of them together.
std::string order_effects(const WhatIfResult& result) {
  const Counterfactual* const together = result.together();
  const auto singles = result.singles();
  if (together == nullptr || singles.size() < 2) return {};
  const Effect all = effect_of(result.run, together->outcome, result.target);
  std::string lines;
  for (const EffectNumber& number : effect_numbers()) {
    double sum = 0;
    const bool known = std::ranges::all_of(singles, [&](const Counterfactual* one) {
      const auto value = effect_of(result.run, one->outcome, result.target).*number.value;
      sum += value.value_or(0);
      return value.has_value();
    });
    const auto value = all.*number.value;
    if (!known || !value) continue;
    lines += fmt::format("{}: {} one by one, {} together\n", number.name, shown(number, sum),
                         shown(number, *value));
  }
  if (lines.empty()) return {};
  const bool some = singles.size() != together->events.size();
  return fmt::format(
      "\nWhat the events changed{}; if the sums differ, one event changes what another does:\n{}",
      some ? fmt::format(", {} of {} of them one by one", singles.size(), together->events.size())
           : "",
      lines);
}

std::string variation(const WhatIfResult& result, LineWidth width) {
  const bool has_others = std::ranges::any_of(
      result.counterfactuals, [](const Counterfactual& one) { return !one.others.empty(); });
  if (!has_others) {
    const bool trained = std::ranges::any_of(
        result.counterfactuals, [](const Counterfactual& one) { return !one.same_bits; });
    return trained ? "\n--seeds N says how much of it another order of the samples would change\n"
                   : "";
  }
  std::vector<std::vector<std::string>> rows{{""}};
  for (const EffectNumber& number : effect_numbers()) rows[0].emplace_back(number.name);
  std::size_t orders = 0;
  for (const Counterfactual& one : result.counterfactuals) {
    if (one.others.empty()) continue;
    std::vector<Effect> effects{effect_of(result.run, one.outcome, result.target)};
    for (const auto& other : one.others) {
      effects.push_back(effect_of(other.run, other.outcome, result.target));
    }
    orders = effects.size();
    rows.push_back({label_of(one)});
    for (const EffectNumber& number : effect_numbers()) {
      std::vector<double> values;
      for (const Effect& effect : effects) {
        if (const auto value = effect.*number.value) values.push_back(*value);
      }
      if (values.size() < effects.size()) {
        rows.back().emplace_back();
        continue;
      }
      const auto count = static_cast<double>(values.size());
      const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
      double squares = 0;
      for (const double value : values) squares += (value - mean) * (value - mean);
      rows.back().push_back(
          fmt::format("{} ± {}", shown(number, mean),
                      without_sign(shown(number, std::sqrt(squares / (count - 1))))));
    }
  }
  return fmt::format(
      "\nWhat they changed in {} orders of the samples, mean and standard deviation:\n{}", orders,
      table_of(std::move(rows), width));
}

}  // namespace

std::string table_of_events(const std::vector<RunEvent>& events, LineWidth width) {
  const bool timed =
      std::ranges::any_of(events, [](const RunEvent& e) { return e.seconds.has_value(); });
  std::vector<Column> columns{Column::right, Column::right};
  std::vector<std::string> heading{"event", "step"};
  if (timed) {
    columns.push_back(Column::right);
    heading.emplace_back("hours");
  }
  columns.push_back(Column::left);
  heading.emplace_back("what happened");
  TextTable table(columns);
  table.add(heading);
  for (std::size_t i = 0; i < events.size(); ++i) {
    std::vector<std::string> row{fmt::format("{}", i + 1), fmt::format("{}", events[i].steps + 1)};
    if (timed) {
      row.push_back(events[i].seconds ? fmt::format("{:.3f}", *events[i].seconds / kSecondsOfHour)
                                      : "");
    }
    row.push_back(events[i].words());
    table.add(std::move(row));
  }
  return table.text(width);
}

std::string words_of_plan(const WhatIfPlan& plan) {
  std::string text = counted(plan.counterfactuals, "counterfactual");
  if (plan.same_bits > 0) {
    text += fmt::format(", {} with the bits of the run, which {} not trained", plan.same_bits,
                        plan.same_bits == 1 ? "is" : "are");
  }
  if (plan.trained > 0) text += fmt::format(", {} trained before", counted(plan.trained, "fork"));
  text += "\n";
  if (plan.forks > 0) {
    text += fmt::format("{} to train, {}, and {} of the run to repeat: about {}\n",
                        counted(plan.forks, "fork"), counted(plan.steps, "step"), plan.repeated,
                        duration(plan.seconds));
  }
  if (plan.events_skipped > 0) {
    text += fmt::format(
        "{} with the smallest changes {} not left out alone; --most N leaves out more\n",
        counted(plan.events_skipped, "event"), plan.events_skipped == 1 ? "is" : "are");
  }
  return text;
}

std::string table_of_answer(const WhatIfResult& result, LineWidth width) {
  std::vector<std::vector<std::string>> rows{{"left out", "step", "lost work"}};
  const std::vector<AnswerColumn> columns = answer_columns(result);
  for (const AnswerColumn& column : columns) rows[0].push_back(column.heading);
  const auto add = [&](std::string name, std::string step, std::string lost,
                       const TrainingOutcome& outcome) {
    rows.push_back({std::move(name), std::move(step), std::move(lost)});
    for (const AnswerColumn& column : columns) rows.back().push_back(column.text(outcome));
  };
  add("nothing", "", "", result.run);
  for (const Counterfactual& one : result.counterfactuals) {
    add(label_of(one), step_of(result, one), lost_work(result, one), one.outcome);
  }
  return fmt::format("{}\n{}to target: samples until {}, at the end of an epoch\n{}{}",
                     table_of_events(result.events, width), table_of(std::move(rows), width),
                     words_of_target(result.target), order_effects(result),
                     variation(result, width));
}

}  // namespace rubato::app
