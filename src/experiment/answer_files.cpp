#include "experiment/answer_files.hpp"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/run_option.hpp"
#include "core/csv_field.hpp"
#include "core/or_null.hpp"
#include "experiment/labels.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;
using Comparison = Answer::Comparison;

// Puts lines together.
class Csv {
 public:
  template <class... Fields>
  Csv& add(const Fields&... fields) {
    (add_one(fields), ...);
    return *this;
  }
  void end_line() {
    if (!line_.empty()) line_.pop_back();
    text_ += line_ + '\n';
    line_.clear();
  }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  void add_one(const std::string& text) { line_ += csv_field(text) + ','; }
  void add_one(const char* text) { line_ += csv_field(text) + ','; }
  void add_one(const std::optional<double>& number) {
    line_ += (number ? fmt::to_string(*number) : std::string()) + ',';
  }
  void add_one(double number) { line_ += fmt::to_string(number) + ','; }
  void add_one(std::int64_t number) { line_ += fmt::to_string(number) + ','; }
  void add_one(std::uint64_t number) { line_ += fmt::to_string(number) + ','; }
  void add_one(bool flag) { line_ += flag ? "true," : "false,"; }

  std::string text_;
  std::string line_;
};

// Of what may not be there.
template <class Part, class Get>
auto of(const std::optional<Part>& part, const Get& get) -> std::optional<double> {
  if (!part) return std::nullopt;
  return get(*part);
}

std::int64_t count_of(const Answer& answer, const Answer::Cell& cell, RunEnd end) {
  std::int64_t count = 0;
  for (const std::size_t member : cell.members) {
    count += answer.runs[member].result.end == end ? 1 : 0;
  }
  return count;
}

std::string rank_of(const Answer::Cell& cell) {
  if (cell.is_best) return "best";
  if (!cell.to_best || !cell.to_best->adjusted) return "";
  return cell.to_best->stands ? "worse" : "not told from best";
}

Json estimate_json(const Estimate& estimate) {
  return {{"mean", estimate.mean},
          {"deviation", estimate.deviation},
          {"half_width", or_null(estimate.half_width)},
          {"count", estimate.count}};
}

Json comparison_json(const std::optional<Comparison>& comparison) {
  if (!comparison) return {};
  Json json = estimate_json(comparison->paired.difference);
  json["p"] = or_null(comparison->paired.p);
  json["p_holm"] = or_null(comparison->adjusted);
  json["stands"] = comparison->adjusted ? Json(comparison->stands) : Json();
  return json;
}

Json labels_json(const Answer& answer, const std::vector<std::string>& labels) {
  Json json = Json::object();
  for (std::size_t i = 0; i < labels.size(); ++i) json[answer.columns[i]] = labels[i];
  return json;
}

Json point_json(const RunPoint& point) {
  return {{"steps", point.steps},
          {"samples", point.samples},
          {"hours", or_null(point.hours)},
          {"money", or_null(point.money)}};
}

Json target_json(const std::optional<Answer::ToTarget>& target) {
  if (!target) return {};
  return {{"reached", target->reached},
          {"median_steps", or_null(target->steps)},
          {"median_samples", or_null(target->samples)},
          {"median_hours", or_null(target->hours)},
          {"median_money", or_null(target->money)}};
}

Json spent_json(const std::optional<Answer::Spent>& spent) {
  if (!spent) return {};
  return {{"steps", spent->steps},          {"samples", spent->samples},
          {"epochs", spent->epochs},        {"iterations", spent->iterations},
          {"hours", or_null(spent->hours)}, {"money", or_null(spent->money)}};
}

Json elasticity_json(const std::optional<Elasticity>& elasticity) {
  if (!elasticity) return {};
  return {{"batch_sizes", elasticity->batch_sizes},
          {"least_batch", elasticity->least_batch},
          {"most_batch", elasticity->most_batch},
          {"fewest_cores", elasticity->fewest_cores},
          {"most_cores", elasticity->most_cores}};
}

Json ends_json(const Answer& answer, const Answer::Cell& cell) {
  Json ends = Json::object();
  for (const RunEnd end : kAllRunEnds) {
    if (const std::int64_t count = count_of(answer, cell, end); count > 0) {
      ends[std::string(name_of(end))] = count;
    }
  }
  return ends;
}

Json cell_json(const Answer& answer, const Answer::Cell& cell) {
  Json json = labels_json(answer, cell.labels);
  json["condition"] = answer.conditions[cell.condition];
  json["baseline"] = cell.is_baseline;
  json["runs"] = cell.runs;
  json["ends"] = ends_json(answer, cell);
  json["value"] = cell.value ? estimate_json(*cell.value) : Json();
  json["to_baseline"] = comparison_json(cell.to_baseline);
  json["best"] = cell.is_best;
  json["to_best"] = comparison_json(cell.to_best);
  json["to_target"] = target_json(cell.to_target);
  json["spent"] = spent_json(cell.spent);
  json["elasticity"] = elasticity_json(cell.elasticity);
  return json;
}

Json run_json(const Answer& answer, const Answer::Run& run) {
  Json json{{"name", run.name}};
  json.update(labels_json(answer, run.labels));
  json["seed"] = run.seed;
  json["end"] = name_of(run.result.end);
  json["reason"] = or_null(run.result.reason);
  json["final"] = or_null(run.result.final_value);
  json["best"] = or_null(run.result.best_value);
  json["epochs"] = run.result.epochs;
  json["iterations"] = run.result.iterations;
  json["spent"] = point_json(run.result.last);
  json["to_target"] = run.to_target ? point_json(*run.to_target) : Json();
  return json;
}

Json tuning_json(const TuningAnswer& tuning) {
  Json values = Json::array();
  for (const auto& [value, estimate, ends] : tuning.values) {
    values.push_back({{"value", value},
                      {"estimate", estimate ? estimate_json(*estimate) : Json()},
                      {"ends", ends}});
  }
  return {{"option", tuning.option},
          {"setting", tuning.setting},
          {"taken", tuning.values[tuning.best].value},
          {"at_end", tuning.at_end},
          {"values", std::move(values)}};
}

}  // namespace

std::string cells_csv(const Answer& answer) {
  Csv csv;
  for (const std::string& column : answer.columns) csv.add(column);
  csv.add("baseline", "runs", "diverged", "out_of_devices", "never_learned", "unlearned", "failed",
          "missing", "mean", "deviation", "half_width", "difference", "difference_half_width", "p",
          "p_holm", "stands", "rank", "steps", "samples", "iterations", "hours", "money",
          "reached_target", "target_steps", "target_samples", "target_hours", "target_money",
          "batch_sizes", "least_batch", "most_batch", "fewest_cores", "most_cores")
      .end_line();
  for (const Answer::Cell& cell : answer.cells) {
    for (const std::string& label : cell.labels) csv.add(label);
    csv.add(cell.is_baseline, cell.runs);
    for (const RunEnd end : {RunEnd::diverged, RunEnd::out_of_devices, RunEnd::never_learned,
                             RunEnd::unlearned, RunEnd::failed, RunEnd::missing}) {
      csv.add(count_of(answer, cell, end));
    }
    const auto& difference = cell.to_baseline;
    const bool tested = difference && difference->adjusted;
    csv.add(of(cell.value, [](const Estimate& e) { return e.mean; }),
            of(cell.value, [](const Estimate& e) { return e.deviation; }),
            of(cell.value, [](const Estimate& e) { return e.half_width; }),
            of(difference, [](const Comparison& c) { return c.paired.difference.mean; }),
            of(difference, [](const Comparison& c) { return c.paired.difference.half_width; }),
            of(difference, [](const Comparison& c) { return c.paired.p; }),
            of(difference, [](const Comparison& c) { return c.adjusted; }),
            std::string(!tested              ? ""
                        : difference->stands ? "true"
                                             : "false"),
            rank_of(cell), of(cell.spent, [](const Answer::Spent& s) { return s.steps; }),
            of(cell.spent, [](const Answer::Spent& s) { return s.samples; }),
            of(cell.spent, [](const Answer::Spent& s) { return s.iterations; }),
            of(cell.spent, [](const Answer::Spent& s) { return s.hours; }),
            of(cell.spent, [](const Answer::Spent& s) { return s.money; }));
    const auto& target = cell.to_target;
    csv.add(of(target, [](const auto& t) { return static_cast<double>(t.reached); }),
            of(target, [](const auto& t) { return t.steps; }),
            of(target, [](const auto& t) { return t.samples; }),
            of(target, [](const auto& t) { return t.hours; }),
            of(target, [](const auto& t) { return t.money; }));
    const auto met = [&](std::int64_t Elasticity::*number) {
      return of(cell.elasticity,
                [&](const Elasticity& e) { return static_cast<double>(e.*number); });
    };
    csv.add(met(&Elasticity::batch_sizes), met(&Elasticity::least_batch),
            met(&Elasticity::most_batch), met(&Elasticity::fewest_cores),
            met(&Elasticity::most_cores))
        .end_line();
  }
  return std::move(csv).text();
}

std::string runs_csv(const Answer& answer) {
  Csv csv;
  csv.add("name");
  for (const std::string& column : answer.columns) csv.add(column);
  csv.add("seed", "baseline", "end", "final", "best", "epochs", "steps", "samples", "iterations",
          "hours", "money", "target_steps", "wall_seconds")
      .end_line();
  for (const Answer::Run& run : answer.runs) {
    csv.add(run.name);
    for (const std::string& label : run.labels) csv.add(label);
    const RunResult& result = run.result;
    csv.add(run.seed, run.is_baseline, std::string(name_of(result.end)), result.final_value,
            result.best_value, result.epochs, result.last.steps, result.last.samples,
            result.iterations, result.last.hours, result.last.money,
            of(run.to_target, [](const RunPoint& p) { return static_cast<double>(p.steps); }),
            result.wall_seconds)
        .end_line();
  }
  return std::move(csv).text();
}

std::string to_json(const Design& design, const Answer& answer,
                    std::span<const TuningAnswer> tuning) {
  Json axes = Json::object();
  for (const auto& [option, values] : design.axes) axes[option] = labels_of(option, values);
  Json json{{"measure", answer.is_accuracy ? "test accuracy in percent" : "test loss"},
            {"axes", std::move(axes)},
            {"budget", design.budget.amount.empty()
                           ? Json()
                           : Json(design.budget.kind + "=" + design.budget.amount)},
            {"target", or_null(answer.target)},
            {"level", kLevel},
            {"comparisons", answer.comparisons},
            {"chance", answer.chance},
            {"tuning", Json::array()},
            {"cells", Json::array()},
            {"runs", Json::array()}};
  for (const TuningAnswer& tuned : tuning) json["tuning"].push_back(tuning_json(tuned));
  for (const Answer::Cell& cell : answer.cells) json["cells"].push_back(cell_json(answer, cell));
  for (const Answer::Run& run : answer.runs) json["runs"].push_back(run_json(answer, run));
  json["detectable"] = answer.blindness ? Json{{"power", kPower},
                                               {"deviations", answer.blindness->effect},
                                               {"least", answer.blindness->least},
                                               {"median", answer.blindness->middle},
                                               {"most", answer.blindness->most}}
                                        : Json();
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace rubato
