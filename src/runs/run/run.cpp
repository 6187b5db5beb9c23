// The constructor checks everything before it changes a file: steps, workload, trainer and hosts
// come first, and a new folder is removed again if what follows throws (RemovedFolder). Observers
// whose state is part of a checkpoint are added in the order in which it is loaded (add_keepers()),
// and only then load_state() loads it; records are cut off after the state was accepted. At the end
// weights, metrics, summary and the last checkpoint are written in this order, because the summary
// says that the run has ended. Without a folder nothing is written, and training is the same.

#include <chrono>
#include <filesystem>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/observers.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/tensorboard.hpp>

#include "base/core/check.hpp"
#include "base/core/file.hpp"
#include "computed_by.hpp"
#include "loop/data/input_file.hpp"
#include "loop/train/step/step_part.hpp"
#include "resumption.hpp"
#include "run_description.hpp"
#include "runs/config/allowed.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/config/configuration_file.hpp"
#include "runs/config/readings.hpp"
#include "runs/config/run_option.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/report/timeline.hpp"
#include "runs/run/workload/run_data.hpp"
#include "runs/run/workload/run_steps.hpp"

namespace rubato {

namespace {

std::shared_ptr<const Workload> checked(std::shared_ptr<const Workload> workload) {
  if (workload == nullptr) throw Error("a run needs a workload; accepted: any but null");
  return workload;
}

void write_data_record(const RunFolder& folder, const Workload& workload) {
  const std::string record = workload.data_record();
  if (!record.empty()) folder.write(kDataRecordFile, record);
}

TrainOptions options_on(std::shared_ptr<Hosts> hosts, const RunConfiguration& configuration,
                        const std::shared_ptr<Timeline>& timeline) {
  TrainOptions options = train_options(configuration);
  options.hosts = std::move(hosts);
  if (timeline) {
    options.on_span = [timeline](const Span& span) { timeline->take(span); };
    options.on_meeting = [timeline](StepIndex step, const Meeting& meeting) {
      timeline->take(step, meeting);
    };
  }
  return options;
}

// Null if no timeline is wanted, or the run has no folder.
std::shared_ptr<Timeline> timeline_of(const RunConfiguration& configuration,
                                      const RunLocation& location) {
  if (configuration.timeline.empty() || location.path().empty()) return nullptr;
  return std::make_shared<Timeline>(location.path(), configuration.timeline->first,
                                    configuration.timeline->last);
}

// Throws Error, before there is a folder, if a configuration file could not hold the configuration.
// The options of files that are copied into the folder do not count, as the copies have other
// names.
void require_nameable(RunConfiguration run, std::span<const WorkloadFile> files) {
  run_option("trace").reset(run);
  run_option(kPluginOption).reset(run);
  for (const WorkloadFile& file : files) run_option(file.option).reset(run);
  static_cast<void>(to_toml(run));
}

}  // namespace

Run::Run(RunConfiguration configuration, std::shared_ptr<const Workload> workload,
         RunLocation location, std::shared_ptr<Hosts> hosts, std::optional<Steps> own)
    : configuration_(std::move(configuration)),
      workload_(checked(std::move(workload))),
      location_(std::move(location)),
      checkpoints_(location_.checkpoints(), configuration_.keep),
      steps_(own ? run_steps_of(configuration_, *std::move(own)) : load_run_steps(configuration_)),
      timeline_(timeline_of(configuration_, location_)),
      trainer_(make_trainer(*workload_, configuration_,
                            make_step_source(configuration_, steps_, workload_->gradient_bytes()),
                            options_on(std::move(hosts), configuration_, timeline_))) {
  require_steps(configuration_,
                {.steps = steps_, .samples = workload_->samples(), .source = [this] {
                   return make_step_source(configuration_, steps_, workload_->gradient_bytes());
                 }});
  // Hosts that come and go are not compared here: those that join later get their state from the
  // others, and are checked with it.
  if (Hosts* const others = trainer_.options().hosts.get(); others && !others->elastic()) {
    const auto& from = location_.from();
    require_equal(*others, what_is_trained(steps_, trainer_, from ? &from->state : nullptr));
  }
  // The corrected command must not find the folder of a run that cannot begin.
  RemovedFolder own_folder;
  if (!location_.path().empty() && !location_.is_resumed()) {
    require_nameable(configuration_, workload_->files());
    if (!location_.folder_) location_.folder_.emplace(location_.path());
    own_folder.path = location_.path();
    for (const auto& [name, bytes] : location_.records_) location_.folder_->write(name, bytes);
  }
  add_keepers();
  if (location_.from()) load_state();
  if (location_.folder_) {
    const std::optional<CheckpointInterval>& interval = *configuration_.checkpoint_every;
    checkpointer_ = std::make_shared<Checkpointer>(
        checkpoints_, interval.value_or(CheckpointInterval()), [this] { sync_records(); },
        [this](auto begin) {
          if (timeline_) timeline_->note("checkpoint", begin, std::chrono::steady_clock::now());
        });
    if (interval) trainer_.add_observer(checkpointer_);
    // A resume does not need the other run any more.
    if (location_.forks_) static_cast<void>(write_checkpoint());
  }
  // The files have been read for their hashes and copies, and are not needed in memory any more.
  for (const WorkloadFile& file : workload_->files()) {
    if (file.mapping) file.mapping->forget();
  }
  own_folder.path.clear();
}

Run::~Run() = default;

void Run::add_keepers() {
  // A host without a run folder writes nothing.
  const bool resumed = location_.from().has_value() && location_.folder_ && !location_.forks_;
  const bool has_records = resumed || !location_.records_.empty();
  std::string config = !location_.folder_ ? to_toml(configuration_)
                       : resumed          ? config_text(configuration_, folder())
                                          : write_origin(folder(), configuration_, steps_,
                                                         workload_->files(), location_.note_);
  if (location_.folder_ && !resumed) write_data_record(folder(), *workload_);
  record_ = trainer_.add_observer<RunRecord>(std::move(config), workload_->files());
  kernels_ = trainer_.add_observer<KernelRecord>(kernels_text(workload_->engine().kernels),
                                                 workload_->engine().version_of("torch"));
  if (location_.folder_) {
    metrics_ =
        trainer_.add_observer<MetricsWriter>(folder().file(RunFolder::kMetrics), has_records);
    if (!configuration_.monitor.empty()) {
      trainer_.add_observer<Monitor>(
          configuration_.monitor, configuration_.monitor_every,
          [metrics = metrics_](const StepPlan& step, std::span<const TensorStatistics> tensors) {
            metrics->write(step, tensors);
          });
    }
    if (configuration_.tensorboard) {
      tensorboard_ = trainer_.add_observer<TensorBoard>(
          folder().path(),
          TensorBoardOptions{.histograms = configuration_.histograms,
                             .histograms_every = configuration_.histograms_every,
                             .hyperparameters = hyperparameters_of(configuration_)},
          has_records);
    }
    if (timeline_) trainer_.add_observer(timeline_);
  }
  if (configuration_.patience > 0) {
    trainer_.add_observer<EarlyStopping>(
        watched_metric(configuration_),
        PatienceOptions{.patience = configuration_.patience, .delta = configuration_.min_delta});
  }
  if (configuration_.keep_best) {
    best_ = trainer_.add_observer<BestWeights>(watched_metric(configuration_),
                                               [this](const BestWeights&) {
                                                 if (location_.folder_) write_best();
                                               });
  }
}

void Run::load_state() {
  // Loading changes no file: a state that is refused leaves the folder as it was.
  const State& state = location_.from()->state;
  location_.forks_ ? trainer_.fork(state) : trainer_.load_state(state);
  if (!location_.folder_) return;
  if (!location_.from()->file.empty()) {
    kept_in_ = set_aside_newer(folder(), {.from = location_.from()->file,
                                          .named = location_.is_named(),
                                          .now = configuration_,
                                          .files = workload_->files()});
  }
  // Cuts off what the records have beyond the state.
  sync_records();
  write_origin(folder(), configuration_, steps_, workload_->files(), location_.note_);
  write_data_record(folder(), *workload_);
  // The existing file may be from a later epoch.
  if (best_ && best_->value()) write_best();
}

RunOutcome Run::execute() {
  try {
    RunOutcome outcome = train();
    if (timeline_) timeline_->write();
    return outcome;
  } catch (...) {
    try {
      if (timeline_) timeline_->write();
    } catch (...) {
      // The exception that ended training matters more.
    }
    throw;
  }
}

RunOutcome Run::train() {
  RunOutcome outcome;
  try {
    const TrainResult result = trainer_.fit();
    const bool ended = result.epochs >= trainer_.options().epochs || !result.stopped.empty();
    if (!ended) return {.end = RunEnd::paused};
    const std::string spent =
        reached(trainer_.options().budget,
                {.iterations = result.iterations, .samples = result.samples, .time = result.time});
    outcome.end = result.out_of_devices                      ? RunEnd::out_of_devices
                  : result.stopped.empty() || !spent.empty() ? RunEnd::completed
                                                             : RunEnd::stopped;
    outcome.summary = summary_of(result.stopped);
  } catch (const Diverged& diverged) {
    outcome.end = RunEnd::diverged;
    outcome.reason = diverged.what();
    outcome.advice = diverged.advice();
    outcome.summary = summary_of(outcome.reason);
  }
  outcome.summary->end = outcome.end;
  if (location_.folder_) {
    const bool diverged = outcome.end == RunEnd::diverged;
    write_results(*outcome.summary, !diverged);
    // This follows the last checkpoint, because a run that continues from there has not ended.
    if (tensorboard_) tensorboard_->end(!diverged);
  }
  return outcome;
}

void Run::write_metrics(const OwnMetrics& metrics) {
  if (metrics_) metrics_->write(metrics);
}

void Run::stop_for_now(Training& training, std::string reason) {
  if (!training.result().stopped.empty()) return;
  if (location_.folder_) {
    static_cast<void>(write_checkpoint());
    // A later state of the same number of steps would be that of a run that has ended.
    checkpointer_->hold();
  }
  training.stop(std::move(reason));
}

RunSummary Run::summary_of(const std::string& stopped) const {
  const Hosts* const hosts = trainer_.options().hosts.get();
  return {.result = trainer_.result(),
          .options = trainer_.options(),
          .engine = workload_->engine(),
          .kernels_wanted = std::string(choice_name(kKernels, configuration_.kernels)),
          .kernel_start = kernel_start(),
          .model = configuration_.model.text(),
          .data = configuration_.data.text(),
          .trace = source_of(steps_),
          .rule = configuration_.rule.text(),
          .weights_sha256 = sha256_of(trainer_.parameters()),
          .wall_seconds = record_->wall_seconds(),
          .gradient_buffers = trainer_.gradient_buffers(),
          .hosts = are_several(hosts) ? std::optional(hosts->count()) : std::nullopt,
          .may_skip = trainer_.objective().loss_scale().has_value(),
          .stopped = stopped};
}

void Run::sync_records() const {
  metrics_->flush();
  if (tensorboard_) tensorboard_->sync();
}

void Run::write_results(RunSummary& summary, bool with_checkpoint) {
  static_cast<void>(write_weights());
  // The lines are on the disk before the summary that contains their hash.
  summary.metrics_sha256 = metrics_->sha256();
  folder().write(RunFolder::kSummary, to_json(summary));
  // The checkpoint comes last: it serves only to train more epochs, which an earlier checkpoint
  // allows, too.
  if (with_checkpoint && !checkpointer_->holds() && configuration_.checkpoint_every->has_value()) {
    static_cast<void>(write_checkpoint());
  }
}

void Run::write_best() const {
  folder().write(fmt::format("best.{}", workload_->weights_suffix()),
                 workload_->weights(best_->parameters(), best_->buffers()));
}

std::filesystem::path Run::write_weights() const {
  const auto write = [&](std::string_view what) {
    std::string name = fmt::format("{}.{}", what, workload_->weights_suffix());
    folder().write(name, workload_->weights(trainer_.parameters(), trainer_.buffers()));
    return name;
  };
  const std::string name = write("weights");
  for (const OtherWeightsInfo& other : other_weights(&trainer_.options())) {
    trainer_.with_weights(other.name, [&] { write(other.name); });
  }
  if (const auto model = workload_->model_file(trainer_.parameters(), trainer_.buffers())) {
    folder().write(RunFolder::kModel, model);
  }
  return folder().file(name);
}

std::filesystem::path Run::write_checkpoint() {
  static_cast<void>(folder());
  return checkpointer_->write(trainer_.result().steps, trainer_.state());
}

std::optional<std::int64_t> Run::write_checkpoint_in_step() {
  static_cast<void>(folder());
  State before;
  std::int64_t before_steps = 0;
  bool is_wanted = false;
  const bool there = trainer_.state_in_step([&](const State& state, std::int64_t steps) {
    before_steps = steps;
    // A run that stop_for_now() has ended continues from the earlier checkpoint.
    is_wanted = steps > 0 && !checkpointer_->holds();
    if (!is_wanted) return;
    sync_records();
    before = state;
  });
  if (!there) return std::nullopt;
  // Training continues while this is written.
  if (is_wanted) static_cast<void>(checkpointer_->keep(before_steps, before));
  return before_steps;
}

std::string Run::warning() const {
  return kernels_->difference();
}

const RunFolder& Run::folder() const {
  if (!location_.folder_) {
    throw Error("the run has no folder; accepted: RunLocation::create() or resume()");
  }
  return *location_.folder_;
}

}  // namespace rubato
