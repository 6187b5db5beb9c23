#include "answer_summary.hpp"

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "answer_columns.hpp"
#include "base/core/text/json.hpp"
#include "runs/experiment/design/experiment_plan.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

// The options that choices differ in.
std::vector<std::string> options_of(const Answer& answer) {
  std::vector<std::string> options;
  for (const std::string& column : answer.columns) {
    if (!is_condition(column)) options.push_back(column);
  }
  return options;
}

// Example: "-0.31 (-0.52 to -0.10)".
std::string score_in_words(const AllConditions::Choice& choice) {
  if (!choice.score) return kNothing;
  const auto words = [](double number) {
    return std::isfinite(number) ? fmt::format("{:.2f}", number) : "-∞";
  };
  return fmt::format("{} ({} to {})", words(*choice.score), words(choice.interval->low),
                     words(choice.interval->high));
}

// Infinities have no number in JSON.
Json finite_or_null(const std::optional<double>& number) {
  return number && std::isfinite(*number) ? Json(*number) : Json();
}

Json choice_json(const Answer& answer, const AllConditions& all,
                 const AllConditions::Choice& choice) {
  Json json = Json::object();
  const std::vector<std::string> options = options_of(answer);
  for (std::size_t i = 0; i < options.size(); ++i) json[options[i]] = choice.labels[i];
  json["score"] = finite_or_null(choice.score);
  json["low"] = choice.interval ? finite_or_null(choice.interval->low) : Json();
  json["high"] = choice.interval ? finite_or_null(choice.interval->high) : Json();
  json["mean_rank"] = choice.mean_rank;
  json["lost"] = choice.lost;
  json["non_inferior_to_baseline"] = answer.margin ? Json(choice.non_inferior_to_baseline) : Json();
  json["non_inferior_to_best"] = answer.margin ? Json(choice.non_inferior_to_best) : Json();
  json["profile"] = Json::array();
  for (const double distance : all.grid()) {
    json["profile"].push_back(all.share_within(choice, distance));
  }
  return json;
}

}  // namespace

AnswerDocument::Table table_of(const AllConditions& all, const Answer& answer) {
  const auto count = all.conditions.size();
  AnswerDocument::Table table{.title = "All conditions together",
                              .keys = all.choices.front().labels.size(),
                              .rows = {options_of(answer)}};
  table.alignment.assign(table.keys, Column::left);
  table.alignment.insert(table.alignment.end(), {Column::left, Column::right, Column::left});
  for (const char* const heading : {"score", "mean rank", "lost runs"}) {
    table.rows.front().emplace_back(heading);
  }
  if (answer.margin) {
    table.alignment.insert(table.alignment.end(), {Column::left, Column::left});
    table.rows.front().emplace_back("non-inferior to the baseline");
    table.rows.front().emplace_back("to the best");
  }
  for (const AllConditions::Choice& choice : all.choices) {
    std::vector<std::string>& row = table.rows.emplace_back(choice.labels);
    row.push_back(score_in_words(choice));
    row.push_back(fmt::format("{:.2f}", choice.mean_rank));
    row.push_back(fmt::format("{} of {}", choice.lost, all.pairs));
    if (!answer.margin) continue;
    row.push_back(fmt::format("{} of {}", choice.non_inferior_to_baseline, count));
    row.push_back(fmt::format("{} of {}", choice.non_inferior_to_best, count));
  }
  const bool is_scored = all.choices.front().score.has_value();
  table.notes.push_back(fmt::format(
      "Over {} conditions with {} seed{}. {}Rank: 1 is the best of a condition and seed; lost runs "
      "are last.{}",
      count, answer.seeds.size(), answer.seeds.size() == 1 ? "" : "s",
      is_scored
          ? "Score: interquartile mean of how much better a run is than the baseline with the same "
            "seed, in standard deviations of the baseline, and its 95 % interval; lost runs are "
            "below all numbers. "
          : "There is no score: a baseline has a lost run, one seed or no deviation. ",
      answer.margin ? " A choice counts as non-inferior to itself." : ""));
  return table;
}

Json json_of(const AllConditions& all, const Answer& answer) {
  Json json{{"conditions", Json::array()}, {"units", Json::array()},  {"pairs", all.pairs},
            {"resamples", kResamples},     {"distances", all.grid()}, {"choices", Json::array()}};
  for (const std::size_t condition : all.conditions) {
    json["conditions"].push_back(answer.conditions[condition]);
  }
  for (const auto& unit : all.units) json["units"].push_back(or_null(unit));
  for (const auto& choice : all.choices) {
    json["choices"].push_back(choice_json(answer, all, choice));
  }
  return json;
}

}  // namespace rubato
