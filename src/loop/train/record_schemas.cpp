// Each schema is a list of rows, one for each column of the record; a row names a number, says what
// it is, and has a pointer to the member or functions that read and write it. Parts of a step
// declare their columns of its record themselves (StepPart::columns). Records that share a
// part, an evaluation or the time of a clock, take over its rows, if need be with a prefix
// (add_part(), add_test()), so a new number of a part appears in all of them. A row without a
// function that writes is computed from others. The help texts are published, in docs/records.md
// and in the JSON Schema. Schemas are built at their first use and never change; result_state.cpp
// has visit_result() and visit_part().

#include "record_schemas.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "base/core/check.hpp"
#include "base/core/seconds.hpp"
#include "loop/train/step/step_part.hpp"

namespace rubato {

namespace {

const char* const kSeconds = "seconds";
const char* const kClock = "clock";
const char* const kSamples = "samples";

// A column of the time of a step: "wall" in `seconds` is the column wall_seconds.
template <class Seconds>
RecordColumn<StepTiming> seconds_column(const std::string& key, Seconds StepTiming::*member,
                                        std::string help, FigureField figure = {}) {
  return {{.name = key + "_seconds",
           .unit = kSeconds,
           .help = std::move(help),
           .object = "seconds",
           .key = key,
           .tag = "seconds/" + key,
           .figure = std::move(figure)},
          member};
}

RecordColumn<ClockTime> hours_column(std::string name, double ClockTime::*seconds, std::string help,
                                     const char* unit = "hours") {
  return {{.name = std::move(name), .unit = unit, .help = std::move(help), .object = kClock},
          [seconds](const ClockTime& time) { return time.*seconds / kSecondsOfHour; },
          [seconds](ClockTime& time, const Cell& cell) {
            time.*seconds = std::get<double>(cell) * kSecondsOfHour;
            return true;
          }};
}

// The number of substeps of each busy core of the step; idle ones follow them.
std::vector<std::int64_t> substeps_of(const StepRecord& step) {
  const std::int64_t busy = std::min(step.plan.minibatches, step.plan.cores);
  std::vector<std::int64_t> substeps;
  substeps.reserve(static_cast<std::size_t>(std::max<std::int64_t>(busy, 0)));
  for (CoreRank core; core.value() < busy; ++core) {
    substeps.push_back(step.plan.share_of(core, step.assignment).count);
  }
  return substeps;
}

// The number of samples is left out: it is that of the test set, the same each time.
void add_test(auto& columns, auto place, const std::string& prefix, const auto& change) {
  add_part(columns, evaluation_schema().columns, place, [&](ColumnInfo& info) {
    info.name = prefix + info.name;
    change(info);
  });
  std::erase_if(columns,
                [&](const auto& column) { return column.info().name == prefix + "samples"; });
}

// The tests of weights beside the model's, which only trainings with the option of their name have.
void add_other_tests(auto& columns, auto member, const std::string& prefix, const auto& change) {
  for (const OtherWeightsInfo& weights : other_weights()) {
    const std::string name = fmt::format("{}_", weights.name);
    const auto place = [ member, of = std::string(weights.name) ](auto& record) -> auto& {
      if constexpr (!std::is_const_v<std::remove_reference_t<decltype(record)>>) {
        return (record.*member)[of];
      } else {
        static const std::optional<Evaluation> none;
        const auto found = (record.*member).find(of);
        return found == (record.*member).end() ? none : found->second;
      }
    };
    add_test(columns, place, prefix + name + "test_", [&](ColumnInfo& info) {
      std::string of_model = info.name;
      of_model.erase(prefix.size(), name.size());
      info.help = fmt::format("`{}` of the {}, with `--{}`", of_model, weights.words, weights.name);
      if (!info.tag.empty()) info.tag.insert(info.tag.find('/') + 1, name);
      info.progress.label = fmt::format("{} {}", weights.label, info.progress.label);
      std::string& label = info.figure.label;
      label += fmt::format("{}{}", label.empty() ? "" : " of ", weights.words);
      change(info);
    });
  }
}

// The columns of steps that belong to no part, and among them those of the parts.
std::vector<RecordColumn<StepRecord>> step_columns() {
  std::vector<RecordColumn<StepRecord>> columns{
      {{.name = "step", .help = "index of the step, from 0 over the whole run"},
       of_part(&StepRecord::plan, &StepPlan::index)},
      {{.name = "epoch", .help = "index of the epoch in which it began, from 0"},
       &StepRecord::epoch},
      {{.name = "batch",
        .unit = kSamples,
        .help = "batch size",
        .tag = "step/batch",
        .progress = {.label = "batch", .worth = 2, .width = 4},
        .figure = {kBatchSection, "Batch size"}},
       of_part(&StepRecord::plan, &StepPlan::batch_size)},
      {{.name = "cores",
        .help = "cores of the step",
        .tag = "step/cores",
        .figure = {kBatchSection, "Cores"}},
       of_part(&StepRecord::plan, &StepPlan::cores)},
      {{.name = "scale",
        .help = "batch size relative to the reference batch size",
        .tag = "step/scale"},
       &StepRecord::scale},
      {{.name = "iterations",
        .help = "scale-invariant iterations: the sum of the gains so far",
        .tag = "train/iterations"},
       &StepRecord::iterations},
      {{.name = "loss",
        .help = "mean over the samples, weighted if the loss has weights, before the update",
        .tag = "train/loss",
        .progress = {.label = "loss", .worth = 5},
        .figure = {kLearningSection, "Loss", "training, each step"}},
       &StepRecord::loss},
      {{.name = "weight",
        .help = "sum of the weights of the mean loss, if the loss has weights",
        .tag = "train/weight"},
       &StepRecord::weight},
      {{.name = "applied",
        .help = "false where the loss or the gradient is not finite; the parameters are as before",
        .usual = true},
       &StepRecord::applied},
      {{.name = "noise_scale",
        .unit = kSamples,
        .help = "gradient noise scale, with `--log-noise` or where a rule or policy needs it",
        .tag = "train/noise_scale",
        .figure = {kRateSection, "Gradient noise scale"}},
       &StepRecord::noise_scale},
      {{.name = "measured_gain",
        .help = "gain that AdaScale would give the step, with `--log-noise`",
        .tag = "train/measured_gain",
        .figure = {kRateSection, "Gain", "as in AdaScale"}},
       &StepRecord::measured_gain}};
  for (const StepPart& part : step_parts()) {
    if (part.columns == nullptr) continue;
    const std::vector<RecordColumn<StepRecord>> own = part.columns();
    const auto before = std::ranges::find_if(
        columns, [&](const auto& column) { return column.info().name == part.columns_after; });
    RUBATO_CHECK(before != columns.end(), "columns of a part come after one that there is");
    columns.insert(before + 1, own.begin(), own.end());
  }
  add_part(columns, clock_schema().columns, &StepRecord::time,
           [](ColumnInfo& info) { info.tag = "clock/" + info.name; });
  columns.push_back({{.name = "decision_*",
                      .help = "inputs of a batch policy's decision, under the policy's names",
                      .key = "decision",
                      .tag = "decision/*"},
                     &StepRecord::decision_inputs});
  columns.push_back({{.name = "substeps",
                      .help = "substeps of each busy core, from the first on; those after them, up "
                              "to `cores`, are idle"},
                     &substeps_of,
                     [](StepRecord& step, const Cell& cell) {
                       const auto& counts = std::get<std::vector<std::int64_t>>(cell);
                       step.plan.minibatches =
                           std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
                       return true;
                     }});
  const std::vector<RecordColumn<StepTiming>> seconds{
      seconds_column("data", &StepTiming::data, "gathering the samples, all threads together"),
      seconds_column("compute", &StepTiming::compute, "forward and backward, all threads together"),
      seconds_column("reduce", &StepTiming::reduce, "summing gradients, all threads together"),
      seconds_column("exchange", &StepTiming::exchange,
                     "from the end of this host's gradients to the sum of all hosts, waits for "
                     "slower ones included; with several hosts",
                     {kTimeSection, "Time of a step", "of it: exchange between hosts", 1}),
      seconds_column("update", &StepTiming::update,
                     "from the end of the sum to the end of the step: rule, update, buffers"),
      seconds_column("wall", &StepTiming::wall, "from the beginning of the step to its end",
                     {kTimeSection, "Time of a step", "the step"})};
  add_part(columns, seconds, &StepRecord::seconds, [](const ColumnInfo&) {});
  return columns;
}

std::vector<RecordColumn<EpochRecord>> epoch_columns() {
  std::vector<RecordColumn<EpochRecord>> columns{
      {{.name = "epoch", .help = "index of the epoch, from 0"}, &EpochRecord::epoch},
      {{.name = "steps", .help = "steps that began in it", .tag = "epoch/steps"},
       &EpochRecord::steps},
      {{.name = "samples",
        .unit = kSamples,
        .help = "samples of the epoch that were trained on",
        .tag = "epoch/samples"},
       &EpochRecord::samples},
      {{.name = "train_loss",
        .help = "mean over the samples, each before the update of its step",
        .tag = "epoch/train_loss",
        .progress = {.label = "train loss"}},
       &EpochRecord::train_loss},
      {{.name = "whole",
        .help = "false where training ended before all of the epoch was trained",
        .usual = true},
       &EpochRecord::whole}};
  add_test(columns, &EpochRecord::test, "test_", [](const ColumnInfo&) {});
  add_other_tests(columns, &EpochRecord::other_tests, "", [](const ColumnInfo&) {});
  columns.push_back({{.name = "*",
                      .help = "metrics of the program's own, under their names",
                      .key = "metrics",
                      .tag = "metrics/*"},
                     &EpochRecord::metrics});
  // TensorBoard shows the clock of the epoch's last step instead.
  add_part(columns, clock_schema().columns, &EpochRecord::time, [](const ColumnInfo&) {});
  columns.push_back({{.name = "train_seconds",
                      .unit = kSeconds,
                      .help = "training steps",
                      .object = "seconds",
                      .key = "train",
                      .tag = "epoch/train_seconds"},
                     &EpochRecord::train_seconds});
  columns.push_back({{.name = "test_seconds",
                      .unit = kSeconds,
                      .help = "evaluation after them",
                      .object = "seconds",
                      .key = "test",
                      .tag = "epoch/test_seconds"},
                     &EpochRecord::test_seconds});
  return columns;
}

std::vector<RecordColumn<TrainResult>> result_columns() {
  std::vector<RecordColumn<TrainResult>> columns;
  add_test(columns, &TrainResult::final_test, "final_test_", [](ColumnInfo& info) {
    info.tag.clear();
    info.null_if_none = true;
  });
  add_other_tests(columns, &TrainResult::final_other_tests, "final_",
                  [](ColumnInfo& info) { info.tag.clear(); });
  columns.insert(columns.end(),
                 {{{.name = "best_test_accuracy",
                    .unit = kShareUnit,
                    .help = "largest test accuracy of all epochs",
                    .null_if_none = true,
                    .kept = true},
                   &TrainResult::best_test_accuracy},
                  {{.name = "epochs", .help = "whole epochs"}, &TrainResult::epochs}});
  const std::vector<RecordColumn<EpochPart>> part{
      {{.name = "steps", .help = "steps trained of an epoch that is not whole"}, &EpochPart::steps},
      {{.name = "samples", .unit = kSamples, .help = "samples trained of it"}, &EpochPart::samples},
      {{.name = "of_steps", .help = "steps that a whole one has"}, &EpochPart::of_steps}};
  add_part(columns, part, &TrainResult::part, [](ColumnInfo& info) {
    info.object = "part_of_epoch";
    info.key = info.name;
    info.name = "part_of_epoch_" + info.name;
    info.null_if_none = true;
  });
  columns.insert(
      columns.end(),
      {{{.name = "steps", .help = "steps in all"}, &TrainResult::steps},
       {{.name = "samples", .unit = kSamples, .help = "samples in all"}, &TrainResult::samples},
       {{.name = "iterations", .help = "scale-invariant iterations"}, &TrainResult::iterations},
       {{.name = "digest", .help = "the digests of all steps, chained"}, &TrainResult::digest},
       {{.name = "train_seconds",
         .unit = kSeconds,
         .help = "training steps, with their observers",
         .kept = true},
        &TrainResult::train_seconds},
       {{.name = "samples_per_second", .help = "samples / train_seconds"},
        [](const TrainResult& result) {
          return result.train_seconds > 0
                     ? static_cast<double>(result.samples) / result.train_seconds
                     : 0.0;
        }}});
  add_part(columns, clock_schema().columns, &TrainResult::time, [](const ColumnInfo&) {});
  const auto goodput = [](double Goodput::*rate) {
    return [rate](const TrainResult& result) -> std::optional<double> {
      if (!result.time) return std::nullopt;
      return goodput_of(result.samples, *result.time).*rate;
    };
  };
  columns.insert(
      columns.end(),
      {{{.name = "samples_per_hour", .help = "goodput: samples / `hours` of modelled time"},
        goodput(&Goodput::samples_per_hour)},
       {{.name = "samples_per_core_hour", .help = "goodput: samples / `core_hours`"},
        goodput(&Goodput::samples_per_core_hour)},
       {{.name = "skipped_steps", .shown = false, .kept = true}, &TrainResult::skipped_steps},
       {{.name = "stopped", .shown = false, .kept = true}, &TrainResult::stopped}});
  return columns;
}

}  // namespace

const RecordSchema<StepRecord>& step_schema() {
  static const RecordSchema<StepRecord> schema{
      .name = "step", .help = "A step, once it has been taken.", .columns = step_columns()};
  return schema;
}

const RecordSchema<OfStep<MinibatchRecord>>& minibatch_schema() {
  using Line = OfStep<MinibatchRecord>;
  static const RecordSchema<Line> schema{
      .name = "minibatch",
      .help = "A minibatch of a step, before the line of the step, with `--log-minibatches`.",
      .columns = {{{.name = "step", .help = "index of the step"}, &Line::step},
                  {{.name = "minibatch", .help = "index of the minibatch within the epoch, from 0"},
                   of_part(&Line::part, &MinibatchRecord::minibatch)},
                  {{.name = "core", .help = "the core that finally computed it, from 0"},
                   of_part(&Line::part, &MinibatchRecord::core)},
                  {{.name = "substep", .help = "index among the core's substeps, from 0"},
                   of_part(&Line::part, &MinibatchRecord::substep)},
                  {{.name = "loss", .help = "mean over its samples"},
                   of_part(&Line::part, &MinibatchRecord::loss)},
                  {{.name = "gradient_norm", .help = "norm of its gradient"},
                   of_part(&Line::part, &MinibatchRecord::gradient_norm)}}};
  return schema;
}

const RecordSchema<EpochRecord>& epoch_schema() {
  static const RecordSchema<EpochRecord> schema{
      .name = "epoch",
      .help = "An epoch, once it has been trained and evaluated.",
      .columns = epoch_columns()};
  return schema;
}

const RecordSchema<FaultOfStep>& fault_schema() {
  static const RecordSchema<FaultOfStep> schema{
      .name = "fault",
      .help = "A core that died, before the line of the step.",
      .columns = {{{.name = "step", .help = "index of the step"}, &FaultOfStep::step},
                  {{.name = "core", .help = "the core, from 0"},
                   of_part(&FaultOfStep::fault, &FaultRecord::core)},
                  {{.name = "substep", .help = "substep in which it died, from 0"},
                   of_part(&FaultOfStep::fault, &FaultRecord::substep)},
                  {{.name = "cores_left", .help = "cores on which the step is redone"},
                   &FaultOfStep::cores_left}}};
  return schema;
}

const RecordSchema<OfStep<TensorStatistics>>& monitor_schema() {
  using Line = OfStep<TensorStatistics>;
  using Tensor = TensorStatistics;
  static const RecordSchema<Line> schema{
      .name = "monitor",
      .help = "A parameter that `--monitor` names, or its gradient, before the line of the step.",
      .columns = {
          {{.name = "step", .help = "index of the step"}, &Line::step},
          {{.name = "tensor", .help = "name of the parameter"},
           of_part(&Line::part, &Tensor::name)},
          {{.name = "of", .help = "parameter (before the update) or gradient"},
           [](const Line& line) {
             return std::string(line.part.gradient ? "gradient" : "parameter");
           },
           [](Line& line, const Cell& cell) {
             line.part.gradient = std::get<std::string>(cell) == "gradient";
             return true;
           }},
          {{.name = "norm", .help = "Euclidean norm"}, of_part(&Line::part, &Tensor::norm)},
          {{.name = "mean", .help = "mean of its elements"}, of_part(&Line::part, &Tensor::mean)},
          {{.name = "min", .help = "least of its elements"}, of_part(&Line::part, &Tensor::min)},
          {{.name = "max", .help = "greatest of its elements"},
           of_part(&Line::part, &Tensor::max)}}};
  return schema;
}

const RecordSchema<Evaluation>& evaluation_schema() {
  static const RecordSchema<Evaluation> schema{
      .name = "evaluation",
      .help = "The output of `rubato eval --json`.",
      .columns = {
          {{.name = "samples",
            .unit = kSamples,
            .help = "samples of the test set",
            .progress = {.label = "test samples"}},
           &Evaluation::samples},
          {{.name = "loss",
            .help = "mean loss over the test set",
            .tag = "test/loss",
            .progress = {.label = "test loss"},
            .figure = {kLearningSection, "Loss", "test"}},
           &Evaluation::loss},
          {{.name = "accuracy",
            .unit = kShareUnit,
            .help = "share of the test set (of its tokens, pixels, ...) whose largest output is "
                    "the target",
            .tag = "test/accuracy",
            .progress = {.label = "accuracy"},
            .figure = {kLearningSection, "Test accuracy", "accuracy"}},
           &Evaluation::accuracy},
          {{.name = "top_k_accuracy",
            .unit = kShareUnit,
            .help = "the same for the K largest outputs, with `--top-k`",
            .tag = "test/top_k_accuracy",
            .progress = {.label = "top-{} accuracy"},
            .figure = {kLearningSection, "Test accuracy", "top-k accuracy"}},
           &Evaluation::top_k_accuracy},
          {{.name = "mse",
            .help = "mean squared error of real targets, with `--metric mse`",
            .tag = "test/mse",
            .progress = {.label = "mse"},
            .figure = {kLearningSection, "Mean squared error"}},
           &Evaluation::mse},
          {{.name = "perplexity",
            .help = "e to the power of the loss, with `--metric perplexity`",
            .tag = "test/perplexity",
            .progress = {.label = "perplexity"},
            .figure = {kLearningSection, "Perplexity"}},
           &Evaluation::perplexity},
          {{.name = "bits_per_byte",
            .help = "the loss in bits per byte of text, with `--metric bits-per-byte`",
            .tag = "test/bits_per_byte",
            .progress = {.label = "bits per byte"},
            .figure = {kLearningSection, "Bits per byte"}},
           &Evaluation::bits_per_byte}}};
  return schema;
}

const RecordSchema<ClockTime>& clock_schema() {
  static const RecordSchema<ClockTime> schema{
      .name = kClock,
      .help = "The reading of a clock of modelled time.",
      .columns = {
          hours_column("hours", &ClockTime::seconds, "modelled time since training began"),
          hours_column("core_hours", &ClockTime::core_seconds,
                       "devices, each for as long as it was paid for: while steps held it, unless "
                       "`billing` says otherwise",
                       "core-hours"),
          {{.name = "money", .help = "`core_hours` at `--price`", .object = kClock},
           &ClockTime::money},
          hours_column("idle_hours", &ClockTime::idle_seconds, "of `hours`: without devices"),
          hours_column("lost_hours", &ClockTime::lost_seconds,
                       "of `hours`: attempts at steps that were lost"),
          hours_column("restart_hours", &ClockTime::restart_seconds, "of `hours`: restarts"),
          hours_column("join_hours", &ClockTime::join_seconds,
                       "of `hours`: too few devices had joined"),
          hours_column("redone_hours", &ClockTime::redone_seconds,
                       "of `hours`: steps repeated after a loss"),
          hours_column("checkpoint_hours", &ClockTime::checkpoint_seconds,
                       "of `hours`: checkpoints"),
          {{.name = "restarts",
            .help = "how often a step, or training after a time without devices, was restarted",
            .object = kClock},
           &ClockTime::restarts}}};
  return schema;
}

const RecordSchema<TrainResult>& result_schema() {
  static const RecordSchema<TrainResult> schema{
      .name = "result", .help = "The result of training.", .columns = result_columns()};
  return schema;
}

}  // namespace rubato
