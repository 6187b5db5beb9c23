#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "runs/report/report_schemas.hpp"
#include "thinned_run.hpp"

namespace rubato::page {

namespace {

using Line = nlohmann::json;

// A column of the schema with a number, or with several named numbers.
struct NumberColumn {
  ColumnInfo info;
  // Path such as "seconds.wall"; for several numbers the prefix of their names, such as
  // "decision.".
  std::string path;

  [[nodiscard]] bool several() const { return info.type == ColumnType::numbers; }
};

std::vector<NumberColumn> number_columns(std::string_view record) {
  std::vector<NumberColumn> columns;
  for (const RecordInfo& info : record_infos()) {
    if (info.name != record) continue;
    for (const ColumnInfo& column : info.columns) {
      NumberColumn number{.info = column, .path = json_path(column)};
      if (number.several()) {
        number.path.pop_back();
      } else if (column.type != ColumnType::whole && column.type != ColumnType::real) {
        continue;
      }
      columns.push_back(std::move(number));
    }
  }
  return columns;
}

// The member `key` of an object; null if `json` is not an object or has no such key.
const Line& at(const Line& json, const std::string& key) {
  static const Line none;
  if (!json.is_object()) return none;
  const auto found = json.find(key);
  return found == json.end() ? none : *found;
}

double number_or_zero(const Line& json) {
  return json.is_number() ? json.get<double>() : 0;
}

// Empty for anything that is not a plausible count.
std::optional<std::int64_t> whole_or_none(const Line& json) {
  constexpr std::int64_t kMost = 1'000'000'000'000;
  if (!json.is_number_integer()) return std::nullopt;
  const auto whole = json.get<std::int64_t>();
  return whole < 0 || whole > kMost ? std::nullopt : std::optional(whole);
}

class MetricsReader {
 public:
  MetricsReader(const std::vector<std::int64_t>& checkpoints, ThinnedRun& run)
      : run_(run), checkpoints_(checkpoints) {}

  void take(const Line& line) {
    const Line& kind = at(line, "kind");
    if (kind == "step") take_step(line);
    if (kind == "epoch") take_epoch(line);
    if (kind == "fault") take_fault(line);
    if (kind == "monitor") take_monitor(line);
    if (kind == "own") take_own(line);
  }

 private:
  void take_numbers(const std::vector<NumberColumn>& columns, const Line& line, Buckets& to) {
    for (const NumberColumn& column : columns) {
      const Line* const value = value_in(line, column.info);
      if (value == nullptr) continue;
      if (value->is_number()) to.add(column.path, value->get<double>());
      if (!column.several() || !value->is_object()) continue;
      for (const auto& [name, number] : value->items()) {
        if (number.is_number()) to.add(column.path + name, number.get<double>());
      }
    }
  }

  void mark(std::string_view kind, std::string text = {}, std::int64_t count = 1) {
    run_.add_mark({kind, step_, std::move(text), run_.last, count});
  }

  void take_step(const Line& line) {
    // Steps count from 1 on the page.
    step_ = whole_or_none(at(line, "step")).value_or(step_) + 1;
    const Line& seconds = at(line, "seconds");
    const Line& clock = at(line, "clock");
    const double cores = number_or_zero(at(line, "cores"));
    const double restarts_before = run_.clock.restarts;

    run_.last[Axis::steps] = static_cast<double>(step_);
    run_.last[Axis::samples] += number_or_zero(at(line, "batch"));
    run_.last[Axis::seconds] += number_or_zero(at(seconds, "wall"));
    if (clock.is_object()) {
      run_.has_clock = true;
      run_.clock = {.idle_hours = number_or_zero(at(clock, "idle_hours")),
                    .lost_hours = number_or_zero(at(clock, "lost_hours")),
                    .restart_hours = number_or_zero(at(clock, "restart_hours")),
                    .restarts = number_or_zero(at(clock, "restarts"))};
      run_.last[Axis::hours] = number_or_zero(at(clock, "hours"));
      run_.last[Axis::money] = number_or_zero(at(clock, "money"));
    }
    run_.steps.begin_step(run_.last);
    take_numbers(step_columns_, line, run_.steps);
    for (const auto& [name, value] : std::exchange(pending_, {})) run_.steps.add(name, value);
    take_substeps(at(line, "substeps"));
    run_.times.data += number_or_zero(at(seconds, "data"));
    run_.times.compute += number_or_zero(at(seconds, "compute"));
    run_.times.reduce += number_or_zero(at(seconds, "reduce"));
    run_.times.exchange += number_or_zero(at(seconds, "exchange"));
    run_.times.update += number_or_zero(at(seconds, "update"));
    run_.times.wall += number_or_zero(at(seconds, "wall"));

    // A step may be restarted several times.
    const auto restarts = static_cast<std::int64_t>(run_.clock.restarts - restarts_before);
    const bool restarted = restarts > 0;
    if (cores < cores_ && faults_.empty() && !restarted) {
      mark(kFewerCores, fmt::format("{} instead of {}", cores, cores_));
    }
    if (restarted) {
      mark(kRestart,
           fmt::format("{}on {} cores, before on {}",
                       restarts == 1 ? "" : fmt::format("{} times, in the end ", restarts), cores,
                       cores_),
           restarts);
    }
    for (std::string& fault : std::exchange(faults_, {})) mark(kFault, std::move(fault));
    if (at(line, "applied") == false && at(line, "skipped") != true) mark(kDiverged);
    if (std::ranges::binary_search(checkpoints_, step_)) mark(kCheckpoint);
    for (Mark& hosts : std::span(run_.marks).first(host_marks_)) {
      if (hosts.step == step_) hosts.at = run_.last;
    }
    cores_ = cores;
  }

  void take_substeps(const Line& json) {
    if (!json.is_array()) return;
    substeps_.clear();
    for (const Line& count : json) {
      const auto whole = whole_or_none(count);
      if (!whole) return;
      substeps_.push_back(*whole);
    }
    run_.substeps.add(substeps_);
  }

  void take_epoch(const Line& line) {
    run_.epochs.begin_step(run_.last);
    take_numbers(epoch_columns_, line, run_.epochs);
    run_.times.test += number_or_zero(at(at(line, "seconds"), "test"));
    run_.last_epoch = line;
  }

  // A fault's line precedes that of its step.
  void take_fault(const Line& line) {
    faults_.push_back(fmt::format("core {} in its substep {}; the step was redone on {} cores",
                                  number_or_zero(at(line, "core")),
                                  number_or_zero(at(line, "substep")),
                                  number_or_zero(at(line, "cores_left"))));
  }

  void take_monitor(const Line& line) {
    const Line& tensor = at(line, "tensor");
    const Line& of = at(line, "of");
    const Line& norm = at(line, "norm");
    if (!tensor.is_string() || !of.is_string() || !norm.is_number()) return;
    pending_.emplace_back(
        fmt::format("monitor.{} {}", tensor.get<std::string>(), of.get<std::string>()),
        norm.get<double>());
  }

  // The line of own metrics follows that of its step or epoch.
  void take_own(const Line& line) {
    Buckets& to = at(line, "epoch").is_null() ? run_.steps : run_.epochs;
    const Line& metrics = at(line, "metrics");
    if (!metrics.is_object()) return;
    for (const auto& [name, number] : metrics.items()) {
      if (number.is_number()) to.add("metrics." + name, number.get<double>());
    }
  }

  ThinnedRun& run_;
  const std::vector<std::int64_t>& checkpoints_;
  const std::vector<NumberColumn> step_columns_ = number_columns("step");
  const std::vector<NumberColumn> epoch_columns_ = number_columns("epoch");
  // Number of marks of hosts, which were added before the metrics are read and come first.
  const std::size_t host_marks_ = run_.marks.size();
  std::int64_t step_ = 0;
  double cores_ = 0;
  // Faults, and norms of tensors, of the step whose line comes next.
  std::vector<std::string> faults_;
  std::vector<std::pair<std::string, double>> pending_;
  std::vector<std::int64_t> substeps_;
};

}  // namespace

void read_metrics(const std::filesystem::path& file, const std::vector<std::int64_t>& checkpoints,
                  ThinnedRun& run) {
  std::ifstream lines(file);
  if (!lines)
    throw Error(fmt::format("{}: cannot read; accepted: a run that has begun", file.string()));
  MetricsReader reader(checkpoints, run);
  std::int64_t number = 0;
  for (std::string text; std::getline(lines, text);) {
    ++number;
    // Lines of minibatches are skipped unparsed: a step may have a thousand, and no chart shows
    // them.
    if (text.find(R"("kind":"minibatch")") != std::string::npos) continue;
    const Line line = Line::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!line.is_discarded()) {
      reader.take(line);
      continue;
    }
    run.warnings.push_back(
        lines.eof() ? fmt::format("{}: the last line, {}, is half written and left out.",
                                  file.string(), number)
                    : fmt::format("{}: line {} is damaged; it and all lines after it are left out.",
                                  file.string(), number));
    return;
  }
}

}  // namespace rubato::page
