// metrics.jsonl and summary.json are written by schemas of their columns (docs/adr/0055): those of
// lines are in record_schemas.cpp and report_schemas.cpp, that of the summary is in this file. A
// MetricsWriter knows the length of its file, which a checkpoint saves. After a resume the rest of
// the file is cut off by the first write and not while the state is loaded, because a state that is
// refused must leave the file as it was. Older summaries do not say how their run ended; end_of()
// derives it.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rubato/runs/records.hpp>

#include "base/core/file.hpp"
#include "base/core/text/json.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/machine/instruction_set.hpp"
#include "base/state/sha256.hpp"
#include "record_cells.hpp"
#include "report_schemas.hpp"

namespace rubato {

namespace {

constexpr std::string_view kBytes = "bytes";

// The line of metrics.jsonl for a record, without its end.
template <class Record>
std::string line_of(const RecordSchema<Record>& schema, const Record& record) {
  return json_text(json_of(schema, record, {{"kind", schema.name}}));
}

}  // namespace

MetricsWriter::MetricsWriter(std::filesystem::path path, bool keep) : path_(std::move(path)) {
  open(keep ? std::ios::app : std::ios::trunc);
}

void MetricsWriter::open(std::ios::openmode mode) {
  out_.close();
  out_.clear();
  out_.open(path_, std::ios::binary | mode);
  if (!out_) cannot_write(path_);
}

void MetricsWriter::visit_state(StateVisitor& state, const Training& training) {
  static_cast<void>(training);
  state.count(kBytes, bytes_);
  if (!state.loading()) return;
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path_, error);
  if (error || std::cmp_less(size, bytes_)) {
    throw_error("{}: has {} bytes, less than the {} at the time of the checkpoint; lines were lost",
                path_.string(), error ? 0 : size, bytes_);
  }
  has_more_ = std::cmp_greater(size, bytes_);
}

void MetricsWriter::cut_off() {
  if (!has_more_) return;
  std::error_code error;
  std::filesystem::resize_file(path_, static_cast<std::uintmax_t>(bytes_), error);
  if (error) cannot_write(path_);
  open(std::ios::app);
  has_more_ = false;
}

void MetricsWriter::flush() {
  cut_off();
  flush_own_file(path_, bytes_);
}

std::string MetricsWriter::sha256() {
  flush();
  return Sha256::hex_of_file(path_);
}

void MetricsWriter::on_fault(Training& training, const StepPlan& step,
                             std::span<const FaultRecord> faults, std::int64_t cores_left) {
  static_cast<void>(training);
  for (const FaultRecord& fault : faults) {
    write_line(line_of(fault_schema(), {step.index, fault, cores_left}));
  }
}

void MetricsWriter::on_step(Training& training, const StepRecord& step) {
  static_cast<void>(training);
  for (const MinibatchRecord& minibatch : step.minibatches) {
    write_line(line_of(minibatch_schema(), {step.plan.index, minibatch}));
  }
  write_line(line_of(step_schema(), step));
}

void MetricsWriter::on_epoch(Training& training, const EpochRecord& epoch) {
  static_cast<void>(training);
  write_line(line_of(epoch_schema(), epoch));
}

void MetricsWriter::write(const StepPlan& step, std::span<const TensorStatistics> tensors) {
  for (const TensorStatistics& tensor : tensors) {
    write_line(line_of(monitor_schema(), {step.index, tensor}));
  }
}

void MetricsWriter::write(const OwnMetrics& metrics) {
  write_line(line_of(own_schema(), metrics));
}

void MetricsWriter::write_line(const std::string& line) {
  cut_off();
  out_ << line << '\n' << std::flush;
  if (!out_) cannot_write(path_);
  bytes_ += static_cast<std::int64_t>(line.size()) + 1;
}

namespace {

NamedTexts kernels_of(const RunSummary& summary) {
  constexpr std::string_view kOpenBlas = "openblas";
  NamedTexts texts{{"wanted", summary.kernels_wanted},
                   {"cpu", std::string(choice_name(kInstructionSets, cpu_instruction_set()))}};
  std::optional<std::string> openblas;
  for (const auto& [library, kernels] : summary.engine.kernels) {
    texts.emplace_back(lower_case(library), kernels);
    if (texts.back().first == kOpenBlas) openblas = kernels;
  }
  if (openblas && summary.kernel_start) openblas = summary.kernel_start->openblas_before;
  if (openblas) texts.emplace_back("openblas_by_itself", *openblas);
  return texts;
}

NamedTexts versions_of(const RunSummary& summary) {
  NamedTexts texts{{"rubato", RUBATO_VERSION}};
  texts.insert(texts.end(), summary.engine.versions.begin(), summary.engine.versions.end());
  return texts;
}

// A column of a text that is null if it is empty.
RecordColumn<RunSummary> text_or_null(ColumnInfo info, std::string RunSummary::*member) {
  info.null_if_none = true;
  return {std::move(info),
          [member](const RunSummary& summary) {
            const std::string& text = summary.*member;
            return text.empty() ? std::nullopt : std::optional(text);
          },
          [member](RunSummary& summary, const Cell& cell) {
            summary.*member = std::get<std::string>(cell);
            return true;
          }};
}

// Names the ends that a summary can have: a paused run has none, and only the user of a run knows
// its target.
std::string ends_of_summaries() {
  std::string names;
  for (const Choice<RunEnd>& end : kRunEnds) {
    if (end.value == RunEnd::paused || end.value == RunEnd::target_missed) continue;
    names += fmt::format("{}`{}`", names.empty() ? "" : ", ", end.name);
  }
  return names;
}

template <class Value>
auto option(Value TrainOptions::*member) {
  return of_part(&RunSummary::options, member);
}

// Recognises the reasons of reached(), such as "100 iterations reached".
bool is_used_up_budget(std::string_view stopped) {
  return !stopped.empty() && std::isdigit(static_cast<unsigned char>(stopped.front())) != 0 &&
         stopped.ends_with(" reached");
}

std::vector<RecordColumn<RunSummary>> summary_columns() {
  std::vector<RecordColumn<RunSummary>> columns;
  add_part(columns, result_schema().columns, &RunSummary::result, [](const ColumnInfo&) {});
  columns.insert(
      columns.end(),
      {{{.name = "skipped_steps",
         .help = "steps left out because the gradient overflowed, with `--precision fp16`, or "
                 "because nothing in them had weight"},
        [](const RunSummary& summary) {
          const std::int64_t skipped = summary.result.skipped_steps;
          return summary.may_skip || skipped > 0 ? std::optional(skipped) : std::nullopt;
        },
        [](RunSummary& summary, const Cell& cell) {
          summary.result.skipped_steps = std::get<std::int64_t>(cell);
          return true;
        }},
       {{.name = "wall_seconds",
         .unit = "seconds",
         .help = "from the first step to the last evaluation"},
        &RunSummary::wall_seconds},
       {{.name = "weights_sha256", .help = "SHA-256 of the trained parameters"},
        &RunSummary::weights_sha256},
       text_or_null(
           {.name = "metrics_sha256", .help = "SHA-256 of metrics.jsonl when the run ended"},
           &RunSummary::metrics_sha256),
       {{.name = "model", .help = "`--model`"}, &RunSummary::model},
       {{.name = "data", .help = "`--data`"}, &RunSummary::data},
       {{.name = "trace", .help = "where the steps came from"}, &RunSummary::trace},
       {{.name = "rule", .help = "`--rule`"}, &RunSummary::rule},
       {{.name = "seed", .help = "`--seed`"}, option(&TrainOptions::seed)},
       {{.name = "minibatch", .unit = "samples", .help = "`--minibatch`"},
        option(&TrainOptions::minibatch_size)},
       {{.name = "cores", .help = "`--cores`"}, option(&TrainOptions::cores)},
       {{.name = "threads", .help = "`--threads`"}, option(&TrainOptions::threads)},
       {{.name = "hosts", .help = "hosts that trained it in the end, if there were several"},
        &RunSummary::hosts},
       {{.name = "gradient_buffers", .help = "buffers for gradients that the run allocated"},
        &RunSummary::gradient_buffers},
       {{.name = "end", .help = "how training ended: " + ends_of_summaries()},
        [](const RunSummary& summary) {
          return summary.end ? std::optional(std::string(choice_name(kRunEnds, *summary.end)))
                             : std::nullopt;
        },
        [](RunSummary& summary, const Cell& cell) {
          const auto row =
              std::ranges::find(kRunEnds, std::get<std::string>(cell), &Choice<RunEnd>::name);
          if (row != kRunEnds.end()) summary.end = row->value;
          return row != kRunEnds.end();
        }},
       text_or_null({.name = "stopped", .help = "why training ended before its epochs did"},
                    &RunSummary::stopped),
       {{.name = "engine", .help = "what computed the model: eigen or libtorch"},
        of_part(&RunSummary::engine, &EngineFacts::engine)},
       {{.name = "kernels",
         .help = "kernels that were asked for, that the CPU and each library have, and that "
                 "OpenBLAS takes by itself"},
        &kernels_of},
       {{.name = "versions", .help = "versions of rubato and of its libraries"}, &versions_of}});
  return columns;
}

}  // namespace

const RecordSchema<RunSummary>& summary_schema() {
  static const RecordSchema<RunSummary> schema{.name = "summary",
                                               .help = "summary.json, once a run has ended.",
                                               .columns = summary_columns()};
  return schema;
}

RunEnd end_of(std::string_view end, std::string_view stopped, bool has_diverged) {
  const auto row = std::ranges::find(kRunEnds, end, &Choice<RunEnd>::name);
  if (row != kRunEnds.end()) return row->value;
  if (has_diverged) return RunEnd::diverged;
  if (stopped == kOutOfDevices) return RunEnd::out_of_devices;
  return stopped.empty() || is_used_up_budget(stopped) ? RunEnd::completed : RunEnd::stopped;
}

std::string EngineFacts::version_of(std::string_view library) const {
  const auto found = std::ranges::find(versions, library, &Facts::value_type::first);
  return found == versions.end() ? std::string() : found->second;
}

std::string kernels_text(const EngineFacts::Facts& kernels) {
  std::string text;
  for (const auto& [library, name] : kernels) {
    text += text.empty() ? "" : ", ";
    text += library + " " + (name.empty() ? "unknown" : name);
  }
  return text;
}

RunSummary read_summary(const std::filesystem::path& file) {
  return record_of(summary_schema(), summary_cells(file));
}

std::string to_json(const RunSummary& summary) {
  return json_text(json_of(summary_schema(), summary), 2) + "\n";
}

}  // namespace rubato
