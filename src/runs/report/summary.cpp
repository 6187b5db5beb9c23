#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/runs/records.hpp>

#include "base/core/text/or_null.hpp"
#include "base/machine/instruction_set.hpp"
#include "record_json.hpp"
#include "report_schemas.hpp"

namespace rubato {

namespace {

// The JSON key of a library: its name in lower case.
std::string key_of(std::string_view library) {
  std::string key(library);
  std::transform(key.begin(), key.end(), key.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return key;
}

NamedTexts kernels_of(const RunSummary& summary) {
  constexpr std::string_view kOpenBlas = "openblas";
  NamedTexts texts{{"wanted", summary.kernels_wanted},
                   {"cpu", std::string(choice_name(kInstructionSets, cpu_instruction_set()))}};
  std::optional<std::string> openblas;
  for (const auto& [library, kernels] : summary.engine.kernels) {
    texts.emplace_back(key_of(library), kernels);
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

std::optional<std::string> or_none(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// Reads a member of the training's options.
template <class Value>
auto option(Value TrainOptions::*member) {
  return [member](const RunSummary& summary) { return summary.options.*member; };
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
        }},
       {{.name = "wall_seconds",
         .unit = "seconds",
         .help = "from the first step to the last evaluation"},
        &RunSummary::wall_seconds},
       {{.name = "weights_sha256", .help = "SHA-256 of the trained parameters"},
        &RunSummary::weights_sha256},
       {{.name = "metrics_sha256",
         .help = "SHA-256 of metrics.jsonl when the run ended",
         .null_if_none = true},
        [](const RunSummary& summary) { return or_none(summary.metrics_sha256); }},
       {{.name = "model", .help = "`--model`"}, &RunSummary::model},
       {{.name = "data", .help = "`--data`"}, &RunSummary::data},
       {{.name = "trace", .help = "where the steps came from"}, &RunSummary::trace},
       {{.name = "rule", .help = "`--rule`"}, option(&TrainOptions::rule)},
       {{.name = "seed", .help = "`--seed`"}, option(&TrainOptions::seed)},
       {{.name = "minibatch", .unit = "samples", .help = "`--minibatch`"},
        option(&TrainOptions::minibatch_size)},
       {{.name = "cores", .help = "`--cores`"}, option(&TrainOptions::cores)},
       {{.name = "threads", .help = "`--threads`"}, option(&TrainOptions::threads)},
       {{.name = "hosts", .help = "hosts that trained it in the end, if there were several"},
        &RunSummary::hosts},
       {{.name = "gradient_buffers", .help = "buffers for gradients that the run allocated"},
        &RunSummary::gradient_buffers},
       {{.name = "stopped",
         .help = "why training ended before its epochs did",
         .null_if_none = true},
        [](const RunSummary& summary) { return or_none(summary.stopped); }},
       {{.name = "engine", .help = "what computed the model: eigen or libtorch"},
        [](const RunSummary& summary) { return summary.engine.engine; }},
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

std::string to_json(const RunSummary& summary) {
  return json_text(json_of(summary_schema(), summary), 2) + "\n";
}

}  // namespace rubato
