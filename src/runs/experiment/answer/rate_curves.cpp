// A rate at which a run is lost has no score and ends a span. The margin of a span is that of
// --margin if it is a number, otherwise one deviation of the cell's baseline over the seeds: what
// another seed might have done.

#include "rate_curves.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/parse.hpp>

#include "answer_columns.hpp"
#include "base/core/text/json.hpp"
#include "base/core/vectors.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

RateCurve::Point point_of(const Answer& answer, double factor, double rate,
                          std::span<const RunResult* const> runs) {
  RateCurve::Point point{.factor = factor, .rate = rate};
  for (const RunResult* const run : runs) {
    point.lost += is_lost(run->end) ? 1 : 0;
    if (run->has_value())
      point.values.push_back(*run->final_value * (answer.is_accuracy ? 100 : 1));
  }
  if (point.lost == 0) point.score = estimate(point.values);
  return point;
}

std::optional<double> margin_of(const Answer& answer, const Answer::Cell& cell) {
  if (answer.margin && answer.margin->amount) return answer.margin->amount;
  const Answer::Cell* const baseline = answer.baseline_of(cell);
  if (baseline == nullptr || !answer.is_whole(*baseline) || baseline->runs < 2) return std::nullopt;
  return baseline->value->deviation;
}

// Finds the best point and the span around it.
void judge(const Answer& answer, RateCurve& curve) {
  const std::vector<RateCurve::Point>& points = curve.points;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!points[i].score) continue;
    const bool is_best =
        !curve.best || answer.better(points[i].score->mean, points[*curve.best].score->mean);
    if (is_best) curve.best = i;
  }
  curve.margin = margin_of(answer, answer.cells[curve.cell]);
  if (!curve.best || !curve.margin) return;
  const double best = points[*curve.best].score->mean;
  const auto is_near = [&](std::size_t i) {
    if (!points[i].score) return false;
    const double behind = (best - points[i].score->mean) * (answer.is_accuracy ? 1 : -1);
    return behind < *curve.margin || behind == 0;
  };
  std::size_t first = *curve.best;
  std::size_t last = *curve.best;
  while (first > 0 && is_near(first - 1)) --first;
  while (last + 1 < points.size() && is_near(last + 1)) ++last;
  curve.span = {{points[first].factor, points[last].factor}};
}

// "1/4" for 0.25.
std::string factor_in_words(double factor) {
  return factor < 1 ? fmt::format("1/{:g}", 1 / factor) : fmt::format("{:g}", factor);
}

std::string span_in_words(const std::pair<double, double>& span) {
  const std::string first = factor_in_words(span.first);
  return span.second > span.first ? fmt::format("{} to {}", first, factor_in_words(span.second))
                                  : first;
}

}  // namespace

std::vector<RateCurve> rate_curves(const ExperimentPlan& plan, const Answer& answer,
                                   std::span<const RunResult> results) {
  std::vector<RateCurve> curves;
  if (plan.rates.empty()) return curves;
  for (std::size_t i = 0; i < plan.cells.size(); ++i) {
    RateCurve& curve = curves.emplace_back(RateCurve{.cell = i});
    const auto add = [&](double factor, const std::vector<std::size_t>& runs) {
      const auto found = vector_of(runs, [&](std::size_t run) { return &results[run]; });
      curve.points.push_back(
          point_of(answer, factor, plan.runs[runs.front()].configuration.learning_rate, found));
    };
    add(1, plan.cells[i].runs);
    for (const PlannedRate& rate : plan.rates) {
      if (rate.cell == i) add(rate.factor, rate.runs);
    }
    std::ranges::sort(curve.points, {}, &RateCurve::Point::factor);
    judge(answer, curve);
  }
  return curves;
}

std::vector<RateCurve::Point> points_of(const TuningAnswer& tuning) {
  std::vector<RateCurve::Point> points;
  for (const auto& [value, estimate, ends, is_lost, finals] : tuning.values) {
    if (!is_number(value) || std::stod(value) <= 0) return {};
    points.push_back({.rate = std::stod(value), .values = finals});
    points.back().lost = std::ssize(ends) - std::ranges::count(ends, name_of(ResultEnd::finished));
    if (!is_lost) points.back().score = estimate;
  }
  return points;
}

AnswerDocument::Table rates_table(const Answer& answer) {
  const std::vector<RateCurve::Point>& all = answer.rates.front().points;
  AnswerDocument::Table table{
      .title = fmt::format("Learning rates from {} to {} times",
                           factor_in_words(all.front().factor), factor_in_words(all.back().factor)),
      .keys = answer.columns.size(),
      .rows = {answer.columns}};
  table.alignment.assign(answer.columns.size() + 3, Column::left);
  for (const char* const heading : {"best", "at the rate", "span"}) {
    table.rows.front().emplace_back(heading);
  }
  for (const RateCurve& curve : answer.rates) {
    std::vector<std::string>& row = table.rows.emplace_back(answer.cells[curve.cell].labels);
    const RateCurve::Point* const best = curve.best ? &curve.points[*curve.best] : nullptr;
    row.push_back(best == nullptr ? "lost at all rates"
                                  : value_in_words(best->score->mean, answer.is_accuracy));
    row.push_back(best == nullptr
                      ? kNothing
                      : fmt::format("{:.3g} ({})", best->rate, factor_in_words(best->factor)));
    row.push_back(curve.span ? span_in_words(*curve.span) : kNothing);
  }
  table.notes.emplace_back(
      "Span: the multiples of the rate, around the best, that lose less to it than the margin, "
      "which is one deviation of the baseline over the seeds unless --margin is a number, and at "
      "which no run is lost.");
  return table;
}

Json rates_json(const Answer& answer) {
  Json all = Json::array();
  for (const RateCurve& curve : answer.rates) {
    Json& json = all.emplace_back(Json::object());
    const Answer::Cell& cell = answer.cells[curve.cell];
    for (std::size_t i = 0; i < answer.columns.size(); ++i) {
      json[answer.columns[i]] = cell.labels[i];
    }
    json["baseline"] = cell.is_baseline;
    json["margin"] = or_null(curve.margin);
    json["best_factor"] = curve.best ? Json(curve.points[*curve.best].factor) : Json();
    json["span"] = curve.span ? Json{curve.span->first, curve.span->second} : Json();
    json["points"] = Json::array();
    for (const auto& [factor, rate, values, score, lost] : curve.points) {
      json["points"].push_back({{"factor", factor},
                                {"rate", rate},
                                {"mean", score ? Json(score->mean) : Json()},
                                {"values", values},
                                {"lost", lost}});
    }
  }
  return all;
}

}  // namespace rubato
