// The chapter is made from whatif.json alone. There is no check of the file before it is used:
// nlohmann::json throws for a member that is missing or of another type, and read_whatif() turns
// every exception into a warning and shows nothing of the file. A figure shows the largest effects;
// the table has all counterfactuals, without the columns in which no row has a value. With several
// orders of samples, the mean effect is shown and each order is a point.

#include "whatif_chapter.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/core/file.hpp"
#include "base/core/text/json.hpp"
#include "base/core/text/text.hpp"
#include "html.hpp"
#include "runs/experiment/answer/statistics.hpp"

namespace rubato::page {

namespace {

// Rows of a figure; the table has all.
constexpr std::size_t kMostEffects = 30;
constexpr double kSharesToPercent = 100;

// A number of RUN/whatif/whatif.json that a figure shows.
struct EffectFigure {
  std::string_view key;
  std::string_view title;
  std::string_view unit;
  double factor;
  // How a value is written.
  std::string_view format;
};
constexpr std::array<EffectFigure, 5> kEffects{
    {{"accuracy", "What each event changed: accuracy", "points", kSharesToPercent, "{:+.2f}"},
     {"loss", "What each event changed: loss", "", 1, "{:+.4f}"},
     {"hours", "What each event changed: modelled hours", "", 1, "{:+.3f}"},
     {"money", "What each event changed: money", "", 1, "{:+.3f}"},
     {"substeps", "What each event changed: substeps", "", 1, "{:+.0f}"}}};

std::string label_of(const nlohmann::json& whatif, const nlohmann::json& one) {
  const auto& events = one.at("events");
  if (events.size() != 1) return one.at("name").get<std::string>();
  const auto& event = whatif.at("events").at(events.at(0).get<std::size_t>() - 1);
  return fmt::format("step {}: {}", event.at("step").get<std::int64_t>(),
                     event.at("words").get<std::string>());
}

// The effects of the run's order of samples and of others; empty if one of them has none.
std::vector<double> effects_of(const nlohmann::json& one, const EffectFigure& figure) {
  std::vector<double> values;
  for (const auto& effect : one.at("effects")) {
    const auto value = number_at(effect, std::string(figure.key));
    if (!value) return {};
    values.push_back(figure.factor * *value);
  }
  return values;
}

// The positions of the largest numbers, in their order. Those that are 0 are left out.
std::vector<std::size_t> largest(const std::vector<double>& numbers, std::size_t most) {
  std::vector<std::size_t> positions(numbers.size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  std::erase_if(positions, [&](std::size_t i) { return numbers[i] == 0; });
  std::ranges::stable_sort(positions, std::greater<>(),
                           [&](std::size_t i) { return std::abs(numbers[i]); });
  positions.resize(std::min(positions.size(), most));
  std::ranges::sort(positions);
  return positions;
}

Json row_of(std::string label, const EffectFigure& figure, const std::vector<double>& values) {
  const double mean = estimate(values).mean;
  Json row{{"label", std::move(label)},
           {"text", fmt::format(fmt::runtime(figure.format), mean)},
           {"verdict", "-"},
           {"mean", chart_number(mean)}};
  if (values.size() == 1) return row;
  row["points"] = Json::array();
  row["seeds"] = Json::array();
  for (std::size_t i = 0; i < values.size(); ++i) {
    row["points"].push_back(chart_number(values[i]));
    row["seeds"].push_back(i + 1);
  }
  return row;
}

// Null if no event has changed the number.
Json figure_of(const nlohmann::json& whatif, const EffectFigure& figure) {
  std::vector<std::pair<std::string, std::vector<double>>> effects;
  std::vector<double> means;
  for (const auto& one : whatif.at("counterfactuals")) {
    std::vector<double> values = effects_of(one, figure);
    if (values.empty()) continue;
    means.push_back(estimate(values).mean);
    effects.emplace_back(label_of(whatif, one), std::move(values));
  }
  const std::vector<std::size_t> shown = largest(means, kMostEffects);
  if (shown.empty()) return {};
  Json json{{"type", "intervals"},
            {"title", figure.title},
            {"value", figure.key},
            {"unit", figure.unit},
            {"help", fmt::format("of the run, less that of a run without the event{}",
                                 shown.size() == kMostEffects
                                     ? fmt::format("; the {} largest, the table below has all",
                                                   kMostEffects)
                                     : "")},
            {"zero", true},
            {"rows", Json::array()}};
  for (const std::size_t i : shown) {
    json["rows"].push_back(row_of(std::move(effects[i].first), figure, effects[i].second));
  }
  return json;
}

// A cell for a number of an outcome; empty if it has none.
std::string cell_of(const nlohmann::json& outcome, const std::string& key, std::string_view format,
                    double factor) {
  const auto& epochs = outcome.at("epochs");
  const auto& clock = outcome.at("clock");
  std::optional<double> value;
  if (key == "substeps") {
    value = number_at(outcome, key);
  } else if (key == "hours" || key == "money") {
    value = number_at(clock, key);
  } else if (!epochs.empty() && outcome.at("end") != "diverged") {
    value = number_at(epochs.back(), key);
  }
  return value ? fmt::format(fmt::runtime(format), factor * *value) : "";
}

std::vector<std::string> row_of(std::string name, std::string step, const nlohmann::json& outcome) {
  std::string end = outcome.at("end").get<std::string>();
  return {std::move(name),
          std::move(step),
          cell_of(outcome, "accuracy", "{:.2f}", kSharesToPercent),
          cell_of(outcome, "loss", "{:.4f}", 1),
          cell_of(outcome, "hours", "{:.3f}", 1),
          cell_of(outcome, "money", "{:.3f}", 1),
          cell_of(outcome, "substeps", "{:.0f}", 1),
          end == "completed" ? "" : std::move(end)};
}

std::string table_of(const nlohmann::json& whatif) {
  AnswerDocument::Table table{.title = "The run without its events", .keys = 2};
  table.rows.push_back({"", "step", "accuracy, %",
                        whatif.at("loss_of").get<std::string>() + " loss", "hours", "money",
                        "substeps", "end"});
  table.rows.push_back(row_of("the run", "", whatif.at("run")));
  for (const auto& one : whatif.at("counterfactuals")) {
    const std::int64_t step = one.at("steps_shared").get<std::int64_t>() + 1;
    const auto& events = one.at("events");
    std::string name = one.at("name").get<std::string>();
    if (events.size() == 1) {
      const auto& event = whatif.at("events").at(events.at(0).get<std::size_t>() - 1);
      name = fmt::format("{}: {}", name, event.at("words").get<std::string>());
    }
    table.rows.push_back(row_of(std::move(name), fmt::format("{}", step), one.at("outcome")));
  }
  for (std::size_t column = table.rows[0].size(); column-- > 1;) {
    if (std::any_of(table.rows.begin() + 1, table.rows.end(),
                    [&](const auto& row) { return !row[column].empty(); })) {
      continue;
    }
    for (auto& row : table.rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
  }
  table.alignment.assign(table.rows[0].size(), Column::right);
  table.alignment[0] = Column::left;
  if (const auto skipped = whatif.at("events_skipped").get<std::int64_t>(); skipped > 0) {
    table.notes.push_back(
        fmt::format("The {} events with the smallest changes were not left out alone.", skipped));
  }
  const bool is_long = table.rows.size() > kMostEffects;
  const std::string html = page::table(table);
  return is_long ? folded_html(table.title, html) : html;
}

Json section_of(const nlohmann::json& whatif) {
  Json section{{"title", "What elasticity cost"}, {"figures", Json::array()}};
  for (const EffectFigure& figure : kEffects) {
    Json made = figure_of(whatif, figure);
    if (!made.is_null()) section["figures"].push_back(std::move(made));
  }
  return section;
}

std::string chapter_of(const nlohmann::json& whatif, const std::string& run) {
  return "<h2>The run without its events</h2>\n" +
         paragraph(
             "Each row is a training that differs from the run in nothing but the events that it "
             "is "
             "without, from their first step on: with equal seeds, a difference is an effect.") +
         table_of(whatif) +
         fmt::format("<pre tabindex=\"0\">rubato whatif {}</pre>\n", escaped(shell_quoted(run)));
}

}  // namespace

void read_whatif(const std::filesystem::path& file, ThinnedRun& run) {
  if (!is_there(file)) return;
  try {
    const nlohmann::json whatif = nlohmann::json::parse(read_file(file));
    Json section = section_of(whatif);
    run.whatif_chapter = chapter_of(whatif, run.name);
    if (!section["figures"].empty()) run.whatif_section = std::move(section);
  } catch (const std::exception& error) {
    run.warnings.push_back(fmt::format("{} cannot be read: {}.", file.string(), error.what()));
  }
}

}  // namespace rubato::page
