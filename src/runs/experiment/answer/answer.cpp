// Answering computes the parts of an answer in the order in which they depend on each other: cells,
// differences to baselines, differences to the best of each condition, the detectable effect,
// margins, and the summary of all conditions. The differences to baselines are one family for
// Holm's correction over the whole answer, and those to the best are a family for each condition.
// Only cells whose runs all have a final value are in them; the others are lost.

#include "answer.hpp"

#include <algorithm>
#include <utility>

#include "base/core/vectors.hpp"
#include "margins.hpp"
#include "statistics.hpp"

namespace rubato {

namespace {

using AnswerCell = Answer::Cell;
using Comparison = Answer::Comparison;

constexpr double kPercent = 100;

double shown(double value, bool is_accuracy) {
  return is_accuracy ? value * kPercent : value;
}

// The mean of what `get` returns for the results; empty if it returns nothing for one of them.
template <class Get>
std::optional<double> mean_of(std::span<const RunResult* const> results, const Get& get) {
  double sum = 0;
  for (const RunResult* const result : results) {
    const std::optional<double> number(get(*result));
    if (!number) return std::nullopt;
    sum += *number;
  }
  return sum / static_cast<double>(results.size());
}

// The extremes over all runs that have an elasticity.
std::optional<Elasticity> together(std::span<const RunResult* const> results) {
  std::optional<Elasticity> all;
  for (const RunResult* const result : results) {
    if (!result->elasticity) continue;
    const Elasticity& one = *result->elasticity;
    if (!all) all = one;
    all->batch_sizes = std::max(all->batch_sizes, one.batch_sizes);
    all->least_batch = std::min(all->least_batch, one.least_batch);
    all->most_batch = std::max(all->most_batch, one.most_batch);
    all->fewest_cores = std::min(all->fewest_cores, one.fewest_cores);
    all->most_cores = std::max(all->most_cores, one.most_cores);
  }
  return all;
}

// Builds the answer, part by part.
class Answering {
 public:
  Answering(const ExperimentPlan& plan, std::span<const RunResult> results,
            std::span<const Measure> measures, std::optional<double> target,
            std::optional<Margin> margin)
      : plan_(plan), results_(results), measures_(measures), target_(target) {
    answer_.margin = margin;
  }

  Answer answer() && {
    answer_.is_accuracy = measures_.front().is_accuracy;
    answer_.columns = plan_.columns;
    answer_.conditions = plan_.conditions;
    answer_.settings = plan_.settings;
    answer_.seeds = plan_.seeds;
    answer_.target = target_;
    for (const Measure& measure : measures_) {
      answer_.chance = std::max(answer_.chance, measure.chance * kPercent);
    }
    take_cells();
    compare_with_baselines();
    for (std::size_t i = 0; i < answer_.conditions.size(); ++i) compare_with_best(i);
    find_blindness();
    test_margins(answer_);
    answer_.together = all_conditions(answer_);
    return std::move(answer_);
  }

 private:
  void take_cells();
  void take_run(const PlannedCell& planned, std::size_t run);
  [[nodiscard]] std::optional<Answer::ToTarget> to_target(const AnswerCell& cell) const;
  [[nodiscard]] static Answer::Spent spent(std::span<const RunResult* const> ended);
  void compare_with_baselines();
  void compare_with_best(std::size_t condition);
  void find_blindness();
  [[nodiscard]] Verdict verdict_of(const Comparison& comparison) const {
    if (!comparison.adjusted) return Verdict::untested;
    if (*comparison.adjusted > kLevel) return Verdict::tied;
    return answer_.better(comparison.difference.mean, 0) ? Verdict::better : Verdict::worse;
  }

  const ExperimentPlan& plan_;
  std::span<const RunResult> results_;
  std::span<const Measure> measures_;
  std::optional<double> target_;
  Answer answer_;
};

void Answering::take_run(const PlannedCell& planned, std::size_t run) {
  Answer::Run taken{.name = plan_.runs[run].name,
                    .labels = planned.labels,
                    .seed = plan_.runs[run].seed,
                    .is_baseline = planned.is_baseline,
                    .result = results_[run]};
  if (target_) {
    const double target = answer_.is_accuracy ? *target_ / kPercent : *target_;
    taken.to_target = reached(results_[run], measures_[run], target);
  }
  answer_.runs.push_back(std::move(taken));
}

void Answering::take_cells() {
  for (const PlannedCell& planned : plan_.cells) {
    AnswerCell cell{.labels = planned.labels,
                    .condition = planned.condition,
                    .setting = planned.setting,
                    .is_baseline = planned.is_baseline,
                    .runs = std::ssize(planned.runs)};
    for (const std::size_t run : planned.runs) {
      cell.members.push_back(answer_.runs.size());
      take_run(planned, run);
    }
    std::vector<const RunResult*> members;
    for (const std::size_t run : planned.runs) members.push_back(&results_[run]);
    if (std::ranges::all_of(members, &RunResult::has_value))
      cell.value = estimate(answer_.values_of(cell));
    cell.to_target = to_target(cell);
    cell.elasticity = together(members);
    std::erase_if(members, [](const RunResult* member) { return !member->has_value(); });
    if (!members.empty()) cell.spent = spent(members);
    answer_.cells.push_back(std::move(cell));
  }
}

std::optional<Answer::ToTarget> Answering::to_target(const AnswerCell& cell) const {
  if (!target_) return std::nullopt;
  std::vector<RunPoint> points;
  for (const std::size_t member : cell.members) {
    if (const auto& point = answer_.runs[member].to_target) points.push_back(*point);
  }
  const std::int64_t missing = cell.runs - std::ssize(points);
  const auto median_of = [&](const auto& get) -> std::optional<double> {
    std::vector<double> numbers;
    for (const RunPoint& point : points) {
      const std::optional<double> number(get(point));
      if (!number) return std::nullopt;
      numbers.push_back(*number);
    }
    return median(std::move(numbers), missing);
  };
  return Answer::ToTarget{.reached = std::ssize(points),
                          .steps = median_of([](const RunPoint& p) { return p.steps; }),
                          .samples = median_of([](const RunPoint& p) { return p.samples; }),
                          .hours = median_of([](const RunPoint& p) { return p.hours; }),
                          .money = median_of([](const RunPoint& p) { return p.money; })};
}

Answer::Spent Answering::spent(std::span<const RunResult* const> ended) {
  const auto mean = [&](const auto& get) { return mean_of(ended, get); };
  return Answer::Spent{
      .steps = *mean([](const RunResult& r) { return r.last.steps; }),
      .samples = *mean([](const RunResult& r) { return r.last.samples; }),
      .epochs = *mean([](const RunResult& r) { return r.epochs; }),
      .iterations = *mean([](const RunResult& r) { return r.iterations; }),
      .hours = mean([](const RunResult& r) { return r.last.hours; }),
      .core_hours = mean([](const RunResult& r) { return r.last.core_hours; }),
      .money = mean([](const RunResult& r) { return r.last.money; }),
      .samples_per_hour = mean([](const RunResult& r) { return r.last.samples_per_hour(); }),
      .samples_per_core_hour =
          mean([](const RunResult& r) { return r.last.samples_per_core_hour(); })};
}

void Answering::compare_with_baselines() {
  std::vector<Comparison*> family;
  for (AnswerCell& cell : answer_.cells) {
    const AnswerCell* const baseline = answer_.baseline_of(cell);
    if (cell.is_baseline || baseline == nullptr || !cell.value || !baseline->value) continue;
    cell.to_baseline = Comparison{answer_.difference(cell, *baseline)};
    family.push_back(&*cell.to_baseline);
  }
  correct(family);
  answer_.comparisons = std::ssize(family);
  for (AnswerCell& cell : answer_.cells) {
    if (cell.is_baseline) {
      cell.verdict = Verdict::baseline;
    } else if (!cell.value) {
      cell.verdict = Verdict::lost;
    } else if (cell.to_baseline) {
      cell.verdict = verdict_of(*cell.to_baseline);
    }
  }
}

void Answering::compare_with_best(std::size_t condition) {
  std::vector<AnswerCell*> cells;
  std::int64_t all = 0;
  for (AnswerCell& cell : answer_.cells) {
    if (cell.condition != condition) continue;
    ++all;
    if (cell.value) {
      cells.push_back(&cell);
    } else {
      cell.rank = Verdict::lost;
    }
  }
  if (all < 2 || cells.empty()) return;
  AnswerCell* const best =
      *std::ranges::min_element(cells, [&](const AnswerCell* one, const AnswerCell* other) {
        return answer_.better(one->value->mean, other->value->mean);
      });
  best->rank = Verdict::best;
  std::vector<Comparison*> family;
  for (AnswerCell* const cell : cells) {
    if (cell == best) continue;
    cell->to_best = Comparison{answer_.difference(*cell, *best)};
    family.push_back(&*cell->to_best);
  }
  correct(family);
  for (AnswerCell* const cell : cells) {
    if (cell != best) cell->rank = verdict_of(*cell->to_best);
  }
}

void Answering::find_blindness() {
  std::vector<double> deviations;
  for (const AnswerCell& cell : answer_.cells) {
    if (cell.to_baseline && cell.to_baseline->difference.deviation > 0) {
      deviations.push_back(cell.to_baseline->difference.deviation);
    }
  }
  if (deviations.empty()) return;
  const double level = kLevel / static_cast<double>(answer_.comparisons);
  const double effect = detectable_effect(std::ssize(answer_.seeds), level, kPower);
  const auto [least, most] = std::ranges::minmax(deviations);
  answer_.blindness = {.least = effect * least,
                       .middle = effect * *median(deviations),
                       .most = effect * most,
                       .effect = effect};
}

}  // namespace

bool Answer::has_clock() const {
  return std::ranges::any_of(
      cells, [](const AnswerCell& cell) { return cell.spent && cell.spent->hours.has_value(); });
}

std::set<std::size_t> Answer::own_conditions() const {
  std::set<std::size_t> own;
  for (const Cell& cell : cells) {
    if (!cell.is_baseline) own.insert(cell.condition);
  }
  return own;
}

std::vector<std::string> Answer::choice_of(const Cell& cell) const {
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!is_condition(columns[i])) labels.push_back(cell.labels[i]);
  }
  return labels;
}

std::vector<const Answer::Cell*> Answer::cells_of(std::size_t condition) const {
  return pointers_to(cells, [&](const Cell& cell) { return cell.condition == condition; });
}

std::vector<std::string> Answer::names_of(ResultEnd end) const {
  std::vector<std::string> names;
  for (const Run& run : runs) {
    if (run.result.end == end) names.push_back(run.name);
  }
  return names;
}

std::int64_t Answer::lost_in(const Cell& cell) const {
  return std::ranges::count_if(
      cell.members, [&](std::size_t member) { return is_lost(runs[member].result.end); });
}

std::vector<double> Answer::values_of(const Cell& cell) const {
  return vector_of(cell.members, [&](std::size_t member) {
    return shown(*runs[member].result.final_value, is_accuracy);
  });
}

PairedDifference Answer::difference(const Cell& one, const Cell& other) const {
  return paired_difference(values_of(one), values_of(other));
}

const Answer::Cell* Answer::baseline_of(const Cell& cell) const {
  const auto found = std::ranges::find_if(
      cells, [&](const Cell& other) { return other.is_baseline && other.setting == cell.setting; });
  return found == cells.end() ? nullptr : &*found;
}

const Answer::Cell* Answer::reference_of(std::size_t condition) const {
  const Cell* best = nullptr;
  for (const Cell& cell : cells) {
    if (cell.condition != condition) continue;
    const Cell* const baseline = baseline_of(cell);
    if (baseline == nullptr || !is_whole(*baseline) || baseline->value->deviation == 0) continue;
    if (best == nullptr || better(baseline->value->mean, best->value->mean)) best = baseline;
  }
  return best;
}

Answer answer_of(const ExperimentPlan& plan, std::span<const RunResult> results,
                 std::span<const Measure> measures, std::optional<double> target,
                 std::optional<Margin> margin) {
  return Answering(plan, results, measures, target, margin).answer();
}

}  // namespace rubato
