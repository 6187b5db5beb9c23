// Tuning chooses by the mean alone, without a test. Which values are tried is decided by
// next_values(), from the means and the lost runs; this file brings them there, and back into runs.

#include "tuning_answer.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/parse.hpp>

#include "base/core/throw_error.hpp"
#include "runs/config/run_option.hpp"
#include "runs/experiment/design/rate_search.hpp"

namespace rubato {

namespace {

std::vector<Tried> tried_of(const TuningAnswer& answer) {
  std::vector<Tried> tried;
  for (const auto& [value, estimate, ends, is_lost, finals] : answer.values) {
    tried.push_back({.value = value, .score = std::nullopt, .is_lost = is_lost});
    if (estimate) tried.back().score = answer.is_accuracy ? estimate->mean : -estimate->mean;
  }
  return tried;
}

// NaN for text that is not a number: no comparison with it is true, so nothing lies beyond it.
double number_in(const std::string& text) {
  return is_number(text) ? std::stod(text) : std::numeric_limits<double>::quiet_NaN();
}

void choose_best(TuningAnswer& answer) {
  const std::vector<Tried> tried = tried_of(answer);
  std::vector<TuningAnswer::Value> values;
  const std::optional<std::size_t> best = best_of(tried);
  for (const std::size_t i : ascending(tried)) {
    if (best == i) answer.best = values.size();
    values.push_back(std::move(answer.values[i]));
  }
  answer.values = std::move(values);
  const double chosen = number_in(answer.values[answer.best].value);
  const auto lies_beyond = [&](const auto& compare) {
    return std::ranges::any_of(answer.values, [&](const TuningAnswer::Value& value) {
      return compare(number_in(value.value), chosen);
    });
  };
  answer.at_end = lies_beyond(std::less<>()) != lies_beyond(std::greater<>());
}

std::string where(const TuningAnswer& answer) {
  return answer.setting.empty() ? "" : " with " + answer.setting;
}

// Returns whether no rate trains: all runs are lost, or, as losses have no level that is chance,
// several rates give exactly the same.
bool learns_nothing(const TuningAnswer& answer) {
  std::vector<double> scores;
  for (const Tried& one : tried_of(answer)) {
    if (!one.is_lost) scores.push_back(*one.score);
  }
  if (scores.empty()) return true;
  return !answer.is_accuracy && scores.size() > 1 &&
         std::ranges::count(scores, scores.front()) == std::ssize(scores);
}

}  // namespace

std::vector<TuningAnswer> tuning_answer(const Design& design, std::span<const TuningCell> cells,
                                        std::span<const RunResult> results,
                                        std::span<const Measure> measures) {
  const std::vector<TuningSubject> subjects = subjects_of(design);
  std::vector<TuningAnswer> answers(subjects.size());
  std::size_t next = 0;
  for (const TuningCell& cell : cells) {
    TuningAnswer& answer = answers[cell.subject];
    answer.option = design.tuning->option;
    answer.setting = subjects[cell.subject].words;
    answer.is_accuracy = measures.front().is_accuracy;
    TuningAnswer::Value value{.value = cell.value};
    for (std::size_t i = 0; i < cell.runs.size(); ++i, ++next) {
      const RunResult& result = results[next];
      value.ends.emplace_back(name_of(result.end));
      value.is_lost = value.is_lost || is_lost(result.end);
      if (result.has_value()) {
        value.finals.push_back(*result.final_value * (answer.is_accuracy ? 100 : 1));
      }
    }
    if (value.finals.size() == cell.runs.size()) value.estimate = estimate(value.finals);
    answer.values.push_back(std::move(value));
  }
  for (TuningAnswer& answer : answers) choose_best(answer);
  return answers;
}

std::vector<TuningCell> tuning_after(const Design& design, std::span<const TuningAnswer> answers) {
  const std::vector<TuningSubject> subjects = subjects_of(design);
  std::vector<std::vector<std::string>> values;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    values.push_back(next_values(*design.tuning, subjects.at(i).usual_rate, tried_of(answers[i])));
  }
  return tuning_of(design, values);
}

void require_tuned(const Design& design, std::span<const TuningAnswer> answers) {
  for (const TuningAnswer& answer : answers) {
    if (design.tuning->is_search() && learns_nothing(answer)) {
      std::set<std::string> ends;
      for (const auto& value : answer.values) ends.insert(value.ends.begin(), value.ends.end());
      throw_error(
          "--tune lr: no rate between {} and {} trains {}{} ({}); accepted: --tune lr=LIST or --lr "
          "X "
          "with rates that do, more epochs, or another model, loss or optimizer",
          answer.values.front().value, answer.values.back().value,
          design.tune_for == TuneFor::baseline ? "the baseline" : "a combination", where(answer),
          ends == std::set{std::string(name_of(ResultEnd::finished))}
              ? std::string("all losses are the same")
              : fmt::format("its runs: {}", fmt::join(ends, ", ")));
    }
    if (answer.values[answer.best].estimate) continue;
    throw_error("--tune: no value of {} brought its runs to an end{}; accepted: other values",
                answer.option, where(answer));
  }
}

std::string untuned_rate(const Design& design) {
  if (is_axis(design, kRateOption)) return {};
  if (design.tuning && design.tuning->option == kRateOption) return {};
  return fmt::format("{} {} as given: not tuned", kRateOption,
                     values_of(design, kRateOption).front());
}

}  // namespace rubato
