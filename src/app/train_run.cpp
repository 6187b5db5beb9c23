#include "app/train_run.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include <rubato/config/trace_source.hpp>
#include <rubato/core/file.hpp>
#include <rubato/core/memory.hpp>
#include <rubato/report/checkpoints.hpp>
#include <rubato/report/metrics.hpp>
#include <rubato/report/progress.hpp>
#include <rubato/report/run_folder.hpp>
#include <rubato/report/summary.hpp>
#include <rubato/report/weights.hpp>
#include <rubato/train/best_weights.hpp>
#include <rubato/train/early_stopping.hpp>
#include <rubato/train/monitor.hpp>

#include "app/kernel_choice.hpp"
#include "app/output.hpp"
#include "app/planned_faults.hpp"
#include "app/resumption.hpp"
#include "app/run_folder.hpp"
#include "app/run_messages.hpp"
#include "app/run_record.hpp"
#include "app/stop_signals.hpp"
#include "app/training.hpp"

namespace rubato::app {

namespace {

// Pauses training when there is a signal, or nobody reads its output any more.
class Interruption final : public Observer {
 public:
  explicit Interruption(std::shared_ptr<Progress> progress) : progress_(std::move(progress)) {}

  void between_steps(Training& training) override {
    if (signal() != 0 || !lost().empty()) training.pause();
  }
  [[nodiscard]] int signal() const { return signals_.received(); }
  // Why something could not be printed; empty where all could.
  [[nodiscard]] std::string lost() const {
    const int error = progress_ ? progress_->error() : 0;
    return error == 0 ? lost_output() : std::generic_category().message(error);
  }

 private:
  std::shared_ptr<Progress> progress_;
  StopSignals signals_{
      "\nrubato train: finishing the step, then writing a checkpoint; again ends at once\n"};
};

constexpr const char* kLessMemory = "smaller minibatches or steps and fewer --threads need less";

void warn(const std::string& text) {
  print_error(fmt::format("rubato train: {}\n", text));
}

// A run from its options to its exit code.
class TrainRun {
 public:
  explicit TrainRun(const TrainArguments& arguments);

  ExitCode execute();

 private:
  // What the state is of, in the order in which it is loaded.
  void add_keepers();
  void add_watchers();
  void go_on();
  void write_best(const BestWeights& best);
  std::filesystem::path write_checkpoint();
  // Empty where training came to its end.
  std::optional<ExitCode> interrupted();
  void write_results(const std::optional<Diverged>& failure);
  [[nodiscard]] std::string to_go_on() const;
  [[nodiscard]] std::string way_out() const;
  [[nodiscard]] std::string way_out_of_memory();

  const TrainArguments& arguments_;
  const RunConfiguration& options_;
  std::filesystem::path path_;
  std::optional<RunFolder> folder_;
  CheckpointFolder checkpoints_;
  std::optional<CheckpointInterval> interval_;
  std::optional<CheckpointFolder::Found> from_;
  TrainingData data_;
  std::optional<Trace> trace_;
  std::optional<TorchTrainer> trainer_;

  std::shared_ptr<RunRecord> record_;
  std::shared_ptr<KeepNewer> newer_;
  std::shared_ptr<MetricsWriter> metrics_;
  std::shared_ptr<BestWeights> best_;
  std::shared_ptr<PlannedFaults> planned_faults_;
  std::shared_ptr<Progress> progress_;
  std::shared_ptr<Interruption> interruption_;
  std::shared_ptr<Checkpointer> checkpointer_;

  RunSummary summary_;
};

std::filesystem::path folder_of(const TrainArguments& arguments) {
  if (arguments.resume) return *arguments.resume;
  auto path = arguments.out.value_or(default_run_folder(std::chrono::system_clock::now()));
  check_run_folder(path);
  return path;
}

// Everything that can be wrong is found before there is a new folder, or anything in that of the
// run to go on with is touched.
TrainRun::TrainRun(const TrainArguments& arguments)
    : arguments_(arguments),
      options_(arguments.run),
      path_(folder_of(arguments)),
      checkpoints_(path_ / "checkpoints", options_.keep),
      interval_(parse_checkpoint_interval(options_.checkpoint_every)) {
  warn_of_slow_blas("rubato train");
  // Before anything takes time.
  if (arguments_.resume) {
    folder_.emplace(RunFolder::existing(path_));
    from_ = checkpoint_of(*folder_, checkpoints_, arguments_);
  }
  data_ = load_training_data(options_);
  trace_ = load_trace(options_.trace, options_.on_trace_end);
  trainer_.emplace(make_trainer(options_, data_, *trace_));
  if (!options_.monitor.empty()) require_match(*trainer_, "--monitor", options_.monitor);
  if (!folder_) folder_.emplace(path_);
  add_keepers();
  if (from_) go_on();
  add_watchers();
}

void TrainRun::add_keepers() {
  record_ = trainer_->add_observer<RunRecord>(from_ ? config_text(options_, *folder_)
                                                    : write_origin(*folder_, options_, *trace_));
  trainer_->add_observer<KernelRecord>();
  if (from_) {
    newer_ = trainer_->add_observer<KeepNewer>(*folder_, checkpoints_, from_->file, arguments_);
  }
  metrics_ =
      trainer_->add_observer<MetricsWriter>(folder_->file("metrics.jsonl"), from_.has_value());
  if (!options_.monitor.empty()) {
    trainer_->add_observer<Monitor>(
        options_.monitor, options_.monitor_every,
        [metrics = metrics_](const StepPlan& step, std::span<const TensorStatistics> tensors) {
          metrics->write(step, tensors);
        });
  }
  const Metric watch = trainer_->options().watch;
  if (options_.patience > 0) {
    trainer_->add_observer<EarlyStopping>(
        watch, PatienceOptions{.patience = options_.patience, .delta = options_.min_delta});
  }
  if (options_.keep_best) {
    best_ = trainer_->add_observer<BestWeights>(
        watch, [this](const BestWeights& best) { write_best(best); });
  }
}

void TrainRun::go_on() {
  trainer_->load_state(from_->state);
  const std::string difference = kernel_difference(from_->state, kernels_in_use());
  if (!difference.empty()) warn(difference);
  write_origin(*folder_, options_, *trace_);
  // The file may be of a later epoch.
  if (best_ && best_->value()) write_best(*best_);
}

void TrainRun::add_watchers() {
  planned_faults_ = trainer_->add_observer<PlannedFaults>(trainer_->options().faults.planned,
                                                          StepIndex{trainer_->result().steps});
  const bool redrawn = !arguments_.quiet && can_redraw(STDOUT_FILENO);
  for (const std::string& line : idle_arguments(arguments_, *trace_, redrawn)) warn(line);
  if (!arguments_.quiet) {
    print_out(opening(options_, data_, *trace_));
    print_kernels();
    if (arguments_.resume) {
      print_out(resumption(trainer_->result(), from_, newer_ ? newer_->folder() : std::nullopt));
    }
    const std::int64_t minibatch = options_.minibatch;
    progress_ = trainer_->add_observer<Progress>(
        stdout, ProgressOptions{.epochs = options_.epochs,
                                .samples_per_epoch = data_.train.size() / minibatch * minibatch,
                                .terminal = redrawn,
                                .log_steps = options_.log_steps,
                                .top_k = options_.top_k});
  }
  interruption_ = trainer_->add_observer<Interruption>(progress_);
  checkpointer_ =
      std::make_shared<Checkpointer>(checkpoints_, interval_.value_or(CheckpointInterval()),
                                     [metrics = metrics_] { metrics->flush(); });
  if (interval_) trainer_->add_observer(checkpointer_);
}

ExitCode TrainRun::execute() {
  std::optional<Diverged> failure;
  try {
    try {
      trainer_->fit();
    } catch (const Diverged& diverged) {
      failure = diverged;
    }
    if (progress_) progress_->finish();
    if (!failure) {
      if (const auto code = interrupted()) return *code;
    }
    write_results(failure);
  } catch (const OutputError& error) {
    if (progress_) progress_->finish();
    throw OutputError(error.what() + way_out());
  } catch (const std::exception& error) {
    const auto memory = memory_failure(error, kLessMemory);
    if (!memory) throw;
    if (progress_) progress_->finish();
    throw MemoryError(*memory + way_out_of_memory());
  }
  if (failure) {
    warn(fmt::format("{}\ntry a lower --lr or another --rule\nmetrics are kept in {}",
                     failure->what(), path_.string()));
    return ExitCode::diverged;
  }
  for (const std::string& line : planned_faults_->missed(summary_.result.steps)) warn(line);
  if (!arguments_.quiet) print_out(closing(summary_, best_.get(), *folder_));
  const auto missed = missed_target(options_, summary_.result);
  if (missed) warn(*missed);
  return missed ? ExitCode::target_missed : ExitCode::good;
}

std::optional<ExitCode> TrainRun::interrupted() {
  if (const int signal = interruption_->signal(); signal != 0) {
    const auto file = write_checkpoint();
    warn(fmt::format("stopped by a signal after {} steps; the checkpoint is {}\n{}",
                     trainer_->result().steps, file.string(), to_go_on()));
    return signal == SIGINT ? ExitCode::interrupted : ExitCode::terminated;
  }
  if (const std::string lost = interruption_->lost(); !lost.empty()) {
    static_cast<void>(write_checkpoint());
    warn(fmt::format("cannot write the output: {}; {}", lost, to_go_on()));
    return ExitCode::output_lost;
  }
  return std::nullopt;
}

void TrainRun::write_results(const std::optional<Diverged>& failure) {
  summary_.options = trainer_->options();
  summary_.precision = trainer_->torch_options().precision;
  summary_.versions = versions();
  summary_.kernels = kernels_in_use();
  summary_.kernels_wanted = choice_name(kKernels, options_.kernels);
  summary_.kernel_start = kernel_start();
  summary_.model = options_.model;
  summary_.data = options_.data;
  summary_.trace = trace_->source();
  summary_.wall_seconds = record_->wall_seconds();
  summary_.result = trainer_->result();
  summary_.stopped = failure ? failure->what() : summary_.result.stopped;
  summary_.weights_sha256 = sha256_of(trainer_->parameters());
  summary_.gradient_buffers = trainer_->gradient_buffers();
  folder_->write("weights.pt", pickled_weights(trainer_->parameters(), trainer_->buffers()));
  folder_->write("summary.json", to_json(summary_));
  // Last, as what it is for, more epochs, is not lost with it.
  if (!failure && interval_) static_cast<void>(write_checkpoint());
}

void TrainRun::write_best(const BestWeights& best) {
  folder_->write("best.pt",
                 pickled_weights(tensors_of(best.parameters()), tensors_of(best.buffers())));
}

std::filesystem::path TrainRun::write_checkpoint() {
  return checkpointer_->write(trainer_->result().steps, trainer_->state());
}

std::string TrainRun::to_go_on() const {
  return fmt::format("to go on: rubato train --resume {}", path_.string());
}

// What is left when something could not be written: a line for the user.
std::string TrainRun::way_out() const {
  if (!checkpoints_.files().empty()) {
    return "\nthe checkpoints before it are kept; " + to_go_on();
  }
  try {
    folder_->write("weights.pt", pickled_weights(trainer_->parameters(), trainer_->buffers()));
  } catch (const OutputError&) {
    return "\nthere is no checkpoint to go on from";
  }
  return fmt::format("\nthe weights after {} steps are in {}", trainer_->result().steps,
                     folder_->file("weights.pt").string());
}

// The same when memory could not be had. The checkpoint of the step before is written where there
// is one.
std::string TrainRun::way_out_of_memory() {
  const std::int64_t steps = trainer_->result().steps;
  if (steps == 0) return "\nit was in the first step: nothing is lost";
  try {
    if (trainer_->has_state()) {
      return fmt::format("\nafter {} steps; the checkpoint is {}; {}", steps,
                         write_checkpoint().string(), to_go_on());
    }
  } catch (const std::exception& error) {
    warn(fmt::format("no checkpoint of {} steps: {}", steps, error.what()));
  }
  if (checkpoints_.files().empty()) return "\nthere is no checkpoint to go on from";
  return "\nthe checkpoints before it are kept; " + to_go_on();
}

}  // namespace

ExitCode train(const TrainArguments& arguments) {
  return TrainRun(arguments).execute();
}

}  // namespace rubato::app
