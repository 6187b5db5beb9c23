// Results of a run come from summary.json, which it has once it has ended, and otherwise from its
// metrics; options come from the summary or from config.toml. The rows of run_facts() are the list
// of facts on the page of one run and the columns of the table on a page of several. The files may
// be damaged, so a value in the summary may have any type.

#include "run_facts.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/core/text/json.hpp"
#include "runs/experiment/answer/answer_columns.hpp"
#include "runs/report/report_schemas.hpp"

namespace rubato::page {

namespace {

const nlohmann::json* found_in(const nlohmann::json& json, const std::string& key) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(key);
  return found == json.end() || found->is_null() || !found->is_primitive() ? nullptr : &*found;
}

std::string percent(std::optional<double> share) {
  return share ? value_in_words(100 * *share, /*is_accuracy=*/true) : std::string();
}

template <Axis axis>
std::string progress(const ThinnedRun& run) {
  return fmt::format("{:.0f}", progress_of(run, axis));
}

template <Axis axis>
std::string modelled(const ThinnedRun& run) {
  return run.has_clock && run.last[axis] > 0 ? amount_in_words(run.last[axis]) : std::string();
}

}  // namespace

std::string option_of(const ThinnedRun& run, const std::string& option) {
  if (const nlohmann::json* const said = found_in(run.summary, option)) {
    return said->is_string() ? said->get<std::string>() : said->dump();
  }
  const auto found = run.options.find(option);
  return found == run.options.end() ? std::string() : found->second;
}

double progress_of(const ThinnedRun& run, Axis axis) {
  const char* const name = axis == Axis::steps     ? "steps"
                           : axis == Axis::samples ? "samples"
                                                   : "wall_seconds";
  const bool is_counted = axis != Axis::hours && axis != Axis::money;
  const auto ended = is_counted ? number_at(run.summary, name) : std::nullopt;
  return ended.value_or(run.last[axis]);
}

std::optional<double> final_value(const ThinnedRun& run, const std::string& test) {
  const auto ended = number_at(run.summary, "final_" + test);
  if (ended || run.summary.is_object() || run.last_epoch.empty()) return ended;
  const auto last = number_in(record_info("epoch"), run.last_epoch, test);
  return last && std::isfinite(*last) ? last : std::nullopt;
}

std::optional<double> best_accuracy(const ThinnedRun& run) {
  if (const auto best = number_at(run.summary, "best_test_accuracy")) return best;
  std::optional<double> best;
  for (const Buckets::Bucket& epochs : run.epochs.buckets()) {
    const Buckets::Range range = run.epochs.range_of(epochs, "test_accuracy");
    if (range.count > 0) best = std::max(best.value_or(0), range.high);
  }
  return best;
}

std::string end_of(const ThinnedRun& run) {
  const bool diverged =
      std::ranges::any_of(run.marks, [](const Mark& mark) { return mark.kind == kDiverged; });
  if (!run.summary.is_object()) return diverged ? "diverged" : "not ended";
  const auto text = [&](const char* name) {
    const nlohmann::json* const found = found_in(run.summary, name);
    return found == nullptr ? "" : found->is_string() ? found->get<std::string>() : found->dump();
  };
  std::string stopped = text("stopped");
  switch (rubato::end_of(text("end"), stopped, diverged)) {
    case RunEnd::completed:
      return "complete";
    case RunEnd::diverged:
      return stopped.empty() ? "diverged" : stopped;
    default:
      return stopped;
  }
}

std::string RunFact::of(const ThinnedRun& run) const {
  return option.empty() ? value(run) : option_of(run, option);
}

const std::vector<RunFact>& run_facts() {
  static const std::vector<RunFact> facts{
      {.heading = "test accuracy %",
       .value = [](const ThinnedRun& run) { return percent(final_value(run, "test_accuracy")); },
       .is_number = true},
      {.heading = "best %",
       .value = [](const ThinnedRun& run) { return percent(best_accuracy(run)); },
       .is_number = true},
      {.heading = "test loss",
       .value =
           [](const ThinnedRun& run) {
             const auto loss = final_value(run, "test_loss");
             return loss ? value_in_words(*loss, /*is_accuracy=*/false) : std::string();
           },
       .is_number = true},
      {.heading = "steps", .value = progress<Axis::steps>, .is_number = true},
      {.heading = "samples", .value = progress<Axis::samples>, .is_number = true},
      {.heading = "seconds",
       .value =
           [](const ThinnedRun& run) { return amount_in_words(progress_of(run, Axis::seconds)); },
       .is_number = true},
      {.heading = "modelled hours", .value = modelled<Axis::hours>, .is_number = true},
      {.heading = "money", .value = modelled<Axis::money>, .is_number = true},
      {.heading = "end", .value = end_of},
      {.heading = "model", .option = "model"},
      {.heading = "data", .option = "data"},
      {.heading = "trace", .option = "trace"},
      {.heading = "rule", .option = "rule"},
      {.heading = "batch policy", .option = "batch"},
      {.heading = "optimizer", .option = "optimizer"},
      {.heading = "learning rate", .option = "lr"},
      {.heading = "seed", .option = "seed"},
      {.heading = "hosts", .option = "hosts"}};
  return facts;
}

namespace {

// A damaged file may have any value here, with any depth of nesting.
std::string text_of(const nlohmann::json& value) {
  if (value.is_null()) return "unknown";
  if (value.is_string()) return value.get<std::string>();
  return value.is_primitive() ? json_text(value) : "...";
}

std::string texts_of(const nlohmann::json& value) {
  if (!value.is_object()) return text_of(value);
  std::vector<std::string> texts;
  for (const auto& [name, text] : value.items()) {
    texts.push_back(fmt::format("{} {}", name, text_of(text)));
  }
  return fmt::to_string(fmt::join(texts, ", "));
}

}  // namespace

Rows summary_rows(const nlohmann::json& summary) {
  Rows rows;
  if (!summary.is_object()) return rows;
  for (const ColumnInfo& column : record_info("summary").columns) {
    const nlohmann::json* const json = value_in(summary, column);
    if (json != nullptr && !json->is_null()) rows.emplace_back(json_path(column), texts_of(*json));
  }
  return rows;
}

}  // namespace rubato::page
