// An interval between checkpoints is judged by simulation: the training is simulated under
// kFailureSeeds sequences of failures, and the samples per hour are averaged. The candidates are
// the intervals of Young and Daly and a scan whose numbers of steps grow by a sixth; class
// Intervals caches the results, as candidates may coincide. A simulation that throws counts as a
// training that never ends, because the same training without failures has been simulated before.
// If the trace has no end and even a checkpoint after every step is not enough, no other interval
// is simulated.

#include "failures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>

#include "base/core/seconds.hpp"
#include "base/core/text/json.hpp"
#include "base/core/throw_error.hpp"
#include "clients/app/line/number_text.hpp"
#include "forecasts.hpp"
#include "runs/run/workload/run_steps.hpp"

namespace rubato::app {

double parse_duration(std::string_view text) {
  constexpr double kSecondsOfMinute = 60;
  double unit = 1;
  std::string_view number = text;
  if (!text.empty() && std::string_view("hms").find(text.back()) != std::string_view::npos) {
    unit = text.back() == 'h' ? kSecondsOfHour : text.back() == 'm' ? kSecondsOfMinute : 1;
    number.remove_suffix(1);
  }
  if (is_number(number)) return parse_real(number, kPositive) * unit;
  throw_error("'{}' is not a time; accepted: such as 4h, 90m, 30s or 30", text);
}

namespace {

double young(double checkpoint, double mtbf) {
  return std::sqrt(2 * checkpoint * mtbf);
}

double daly(double checkpoint, double mtbf) {
  if (checkpoint >= 2 * mtbf) return mtbf;
  const double share = checkpoint / (2 * mtbf);
  return young(checkpoint, mtbf) * (1 + std::sqrt(share) / 3 + share / 9) - checkpoint;
}

// A training whose cluster has further arguments.
SimulatedTraining simulated_with(const RunConfiguration& run, const std::string& more,
                                 const RunSteps& steps, std::optional<std::int64_t> samples) {
  RunConfiguration changed = run;
  const std::string& text = run.cluster.text();
  changed.cluster = text.empty() ? more : text + ',' + more;
  return simulate_training(changed, steps, samples);
}

double per_hour(const SimulatedTraining& training) {
  return goodput_of(training.result.samples, training.result.time.value_or(ClockTime()))
      .samples_per_hour;
}

// Finds out what intervals give, each only once.
class Intervals {
 public:
  Intervals(const RunConfiguration& run, const RunSteps& steps, std::optional<std::int64_t> samples,
            double mtbf, double seconds_of_step, const std::function<void()>& after_each)
      : run_(run),
        steps_(steps),
        samples_(samples),
        mtbf_(mtbf),
        seconds_of_step_(seconds_of_step),
        after_each_(after_each) {}

  const CheckpointChoice& of(std::int64_t steps) {
    const auto [found, is_new] = found_.try_emplace(steps);
    if (is_new) {
      found->second = {.steps = steps,
                       .seconds = static_cast<double>(steps) * seconds_of_step_,
                       .samples_per_hour = mean_of(steps)};
    }
    return found->second;
  }
  const CheckpointChoice& of_seconds(double seconds) {
    return of(std::max<std::int64_t>(1, std::llround(seconds / seconds_of_step_)));
  }
  // The training never ends with any further interval.
  void give_up() { never_ends_ = true; }

 private:
  double mean_of(std::int64_t steps) {
    if (never_ends_) return 0;
    double sum = 0;
    for (std::uint64_t seed = 1; seed <= kFailureSeeds; ++seed) {
      try {
        sum += per_hour(simulated_with(
            run_, fmt::format("checkpoint-steps={},mtbf={},mtbf-seed={}", steps, mtbf_, seed),
            steps_, samples_));
      } catch (const Error&) {
        // The same training went well without failures, so with these it never ends.
        return 0;
      }
      if (after_each_) after_each_();
    }
    return sum / kFailureSeeds;
  }

  const RunConfiguration& run_;
  const RunSteps& steps_;
  std::optional<std::int64_t> samples_;
  double mtbf_;
  double seconds_of_step_;
  const std::function<void()>& after_each_;
  std::map<std::int64_t, CheckpointChoice> found_;
  bool never_ends_ = false;
};

bool is_endless(const RunSteps& steps) {
  return std::visit(
      [](const auto& of) { return of.end() == TraceEnd::hold || of.end() == TraceEnd::cycle; },
      steps);
}

}  // namespace

FailureRow checkpoints_for(const RunConfiguration& run, const RunSteps& steps,
                           std::optional<std::int64_t> samples, double mtbf,
                           const std::function<void()>& after_each) {
  const ClusterModel& cluster = *run.cluster;
  if (cluster.checkpoint_seconds == 0 || cluster.checkpoint_steps > 0 ||
      cluster.market.loses != Loses::checkpoint || cluster.market.mtbf_seconds > 0) {
    throw_error(
        "--mtbf finds the steps between checkpoints; accepted: --cluster with checkpoint=SECONDS "
        "and loses=checkpoint, without checkpoint-steps and mtbf");
  }
  const SimulatedTraining undisturbed = simulate_training(run, steps, samples);
  const SimulationResult& result = undisturbed.result;
  const double seconds_of_step =
      result.time.value_or(ClockTime()).training_seconds() / static_cast<double>(result.steps);
  Intervals intervals(run, steps, samples, mtbf, seconds_of_step, after_each);
  // Most is kept of what is computed between failures if a checkpoint follows each step. If that
  // never ends on devices that last for ever, neither does anything with fewer checkpoints.
  if (is_endless(steps) && intervals.of(1).samples_per_hour == 0) intervals.give_up();
  FailureRow row{.mtbf = mtbf, .undisturbed = per_hour(undisturbed)};
  row.young = intervals.of_seconds(young(cluster.checkpoint_seconds, mtbf));
  row.daly = intervals.of_seconds(daly(cluster.checkpoint_seconds, mtbf));
  const auto consider = [&](const CheckpointChoice& choice) {
    if (choice.samples_per_hour > (row.best ? row.best->samples_per_hour : 0)) row.best = choice;
  };
  consider(row.young);
  consider(row.daly);
  constexpr std::int64_t kGrowth = 6;
  for (std::int64_t every = 1; every <= result.steps;
       every += std::max(std::int64_t{1}, every / kGrowth)) {
    consider(intervals.of(every));
  }
  return row;
}

namespace {

OutputFields<FailureRow> failure_fields() {
  using Choice = CheckpointChoice;
  const JsonForm<Choice> choice = form_of_object<Choice>(
      {{"steps", "steps between two checkpoints", &Choice::steps},
       {"seconds", "the time of these steps", &Choice::seconds},
       {"samples_per_hour", "mean of the simulations; 0 if one of them never ends",
        &Choice::samples_per_hour}});
  OutputFields<FailureRow> fields{
      {"options", "the options that were given several values, by name", &FailureRow::options},
      {"mtbf_seconds", "mean time between failures", &FailureRow::mtbf,
       OutputColumn{"mtbf", Column::right, modelled_time}},
      {"undisturbed_samples_per_hour", "without failures and checkpoints", &FailureRow::undisturbed,
       OutputColumn{"undisturbed", Column::right, rounded}},
      {"young", "Young's interval", &FailureRow::young, choice},
      {"daly", "Daly's interval", &FailureRow::daly, choice},
      {"best", "the best interval found; null if training never ends", &FailureRow::best, choice}};
  using Get = std::function<std::optional<Choice>(const FailureRow&)>;
  const std::array<std::pair<const char*, Get>, 3> intervals{
      {{"young", &FailureRow::young}, {"daly", &FailureRow::daly}, {"best", &FailureRow::best}}};
  for (const auto& [name, get] : intervals) {
    const auto add = [&, get = get](const std::string& heading, auto text) {
      fields.push_back({heading, Column::right, [get, text](const FailureRow& row) {
                          const std::optional<Choice> of = get(row);
                          return of ? text(*of) : "-";
                        }});
    };
    add(fmt::format("{}: steps", name), [](const Choice& of) { return grouped(of.steps); });
    add("time", [](const Choice& of) { return modelled_time(of.seconds); });
    fields.push_back({"samples/hour", Column::right, [get = get](const FailureRow& row) {
                        const double rate = get(row).value_or(Choice()).samples_per_hour;
                        return rate > 0 ? rounded(rate) : "never ends";
                      }});
  }
  return fields;
}

}  // namespace

JsonForm<std::span<const FailureRow>> failure_form() {
  return form_of<std::span<const FailureRow>>(form_of_object(failure_fields()));
}

std::string failure_table(std::span<const FailureRow> rows, LineWidth width) {
  return table_with_options(failure_fields(), rows, width);
}

std::string failure_json(std::span<const FailureRow> rows) {
  return json_text(failure_form().write(rows), 2) + "\n";
}

}  // namespace rubato::app
