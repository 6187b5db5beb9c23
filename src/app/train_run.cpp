#include "app/train_run.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

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
#include "app/planned_faults.hpp"
#include "app/run_folder.hpp"
#include "app/run_record.hpp"
#include "app/stop_signals.hpp"
#include "app/trace_option.hpp"
#include "app/training.hpp"

namespace rubato::app {

namespace {

// Pauses training when there is a signal.
class SignalWatch final : public Observer {
 public:
  void between_steps(Training& training) override {
    if (received() != 0) training.pause();
  }
  [[nodiscard]] int received() const { return signals_.received(); }

 private:
  StopSignals signals_{
      "\nrubato train: finishing the step, then writing a checkpoint; again ends at once\n"};
};

// The configuration, and the trace as it was read, so that the folder alone reproduces the run.
// Returns the configuration.
std::string write_origin(const RunFolder& folder, TrainCommandOptions options, const Trace& trace) {
  if (trace_file(options.elasticity.trace)) {
    folder.write("trace.csv", trace.to_csv());
    options.elasticity.trace = folder.file("trace.csv").string();
  }
  std::string config = to_config(options, folder.path());
  folder.write("config.toml", config);
  return config;
}

// The newest good checkpoint of a run. Says on stderr which ones are not good; a run without any
// begins anew, one with none but bad ones is an Error.
std::optional<CheckpointFolder::Found> checkpoint_of(const RunFolder& folder,
                                                     const CheckpointFolder& checkpoints) {
  bool rejected = false;
  auto found = checkpoints.newest([&](const std::string& why) {
    fmt::print(stderr, "rubato train: {}\n", why);
    rejected = true;
  });
  if (!found && rejected) {
    throw Error(
        fmt::format("{}: no checkpoint can be read; accepted: a run with a good one, or "
                    "without any, which then begins anew",
                    folder.file("checkpoints").string()));
  }
  return found;
}

void print_opening(const TrainCommandOptions& options, const TrainingData& data,
                   const Trace& trace) {
  fmt::print("{} on {}: {} training and {} test images, trace {}\n", options.model, options.data,
             data.train.size(), data.test.size(), trace.source());
  fmt::print("rule {}, lr {} at batch {}, {}, minibatch {}, {} cores on {} threads, seed {}\n",
             options.rule, options.learning_rate, options.reference_batch, options.optimizer,
             options.elasticity.minibatch, options.elasticity.cores, options.threads, options.seed);
}

void print_resumption(const TrainResult& result,
                      const std::optional<CheckpointFolder::Found>& from) {
  if (from) {
    fmt::print("going on after {} steps, {} epochs, from {}\n", result.steps, result.epochs,
               from->file.string());
  } else {
    fmt::print("there is no checkpoint yet: the run begins anew\n");
  }
}

void print_closing(const RunSummary& summary, const BestWeights* best, const RunFolder& folder) {
  const TrainResult& result = summary.result;
  if (!result.stopped.empty()) fmt::print("stopped: {}\n", result.stopped);
  fmt::print("trained {} epochs, {} steps, {} samples in {} ({} samples/s)\n", result.epochs,
             result.steps, result.samples, clock_time(summary.wall_seconds),
             short_number(static_cast<double>(result.samples) / result.train_seconds));
  if (result.final_test && result.final_test->accuracy) {
    fmt::print("test accuracy {:.2f} %, best {:.2f} %\n", *result.final_test->accuracy * 100,
               *result.best_test_accuracy * 100);
  }
  if (best != nullptr && best->value()) {
    fmt::print("best weights are those of epoch {}, in best.pt\n", best->epoch().value() + 1);
  }
  fmt::print("run folder {}\n", folder.path().string());
}

bool missed(const TrainCommandOptions& options, const TrainResult& result) {
  if (!options.target_accuracy) return false;
  const double accuracy = result.final_test ? result.final_test->accuracy.value_or(0) * 100 : 0;
  if (accuracy >= *options.target_accuracy) return false;
  fmt::print(stderr, "rubato train: test accuracy {:.2f} % is below --target-accuracy {} %\n",
             accuracy, *options.target_accuracy);
  return true;
}

// What is left when something could not be written: a line for the user.
std::string way_out(const CheckpointFolder& checkpoints, const RunFolder& folder,
                    const Trainer& trainer) {
  if (!checkpoints.files().empty()) {
    return fmt::format("\nthe checkpoints before it are kept; to go on: rubato train --resume {}",
                       folder.path().string());
  }
  try {
    folder.write("weights.pt", pickled_weights(trainer.parameters(), trainer.buffers()));
  } catch (const OutputError&) {
    return "\nthere is no checkpoint to go on from";
  }
  return fmt::format("\nthe weights after {} steps are in {}", trainer.result().steps,
                     folder.file("weights.pt").string());
}

constexpr const char* kLessMemory = "smaller minibatches or steps and fewer --threads need less";

// What is left when memory could not be had: a line for the user. The checkpoint of the step before
// is written where there is one.
std::string way_out_of_memory(const CheckpointFolder& checkpoints, const RunFolder& folder,
                              const Trainer& trainer,
                              const std::function<std::filesystem::path()>& write_checkpoint) {
  const std::int64_t steps = trainer.result().steps;
  if (steps == 0) return "\nit was in the first step: nothing is lost";
  const std::string resume = fmt::format("rubato train --resume {}", folder.path().string());
  try {
    if (trainer.has_state()) {
      return fmt::format("\nafter {} steps; the checkpoint is {}; to go on: {}", steps,
                         write_checkpoint().string(), resume);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "rubato train: no checkpoint of {} steps: {}\n", steps, error.what());
  }
  if (checkpoints.files().empty()) return "\nthere is no checkpoint to go on from";
  return fmt::format("\nthe checkpoints before it are kept; to go on: {}", resume);
}

ExitCode interrupted(int signal, const TrainResult& result, const std::filesystem::path& file,
                     const RunFolder& folder) {
  fmt::print(stderr,
             "rubato train: stopped by a signal after {} steps; the checkpoint is {}\n"
             "to go on: rubato train --resume {}\n",
             result.steps, file.string(), folder.path().string());
  return signal == SIGINT ? ExitCode::interrupted : ExitCode::terminated;
}

}  // namespace

ExitCode train(const TrainCommandOptions& options) {
  const auto path = options.resume.value_or(
      options.out.value_or(default_run_folder(std::chrono::system_clock::now())));
  if (!options.resume) check_run_folder(path);
  warn_of_slow_blas("rubato train");

  // What is there to go on with, before anything takes time.
  std::optional<RunFolder> folder;
  std::optional<CheckpointFolder> checkpoints;
  checkpoints.emplace(path / "checkpoints", options.keep);
  std::optional<CheckpointFolder::Found> from;
  if (options.resume) {
    folder.emplace(RunFolder::existing(path));
    from = checkpoint_of(*folder, *checkpoints);
    if (from) require_same_options(from->state, to_config(options, path));
  }
  const TrainingData data = load_training_data(options);
  const Trace trace = load_trace(options.elasticity.trace, options.elasticity.on_trace_end);
  Trainer trainer = make_trainer(options, data, trace);

  // Before there is a run folder: it may find that no parameter is called so.
  if (!options.monitor.empty()) {
    static_cast<void>(matching(trainer.parameters(), options.monitor));
  }

  if (!folder) folder.emplace(path);
  // Until the state is known to be the run's, nothing in its folder is touched.
  const auto record = trainer.add_observer<RunRecord>(from ? to_config(options, path)
                                                           : write_origin(*folder, options, trace));
  trainer.add_observer<KernelRecord>();
  const auto metrics =
      trainer.add_observer<MetricsWriter>(folder->file("metrics.jsonl"), from.has_value());
  if (!options.monitor.empty()) {
    trainer.add_observer<Monitor>(
        options.monitor, options.monitor_every,
        [metrics](const StepPlan& step, std::span<const TensorStatistics> tensors) {
          metrics->write(step, tensors);
        });
  }
  const Metric watch = trainer.options().watch;
  if (options.patience > 0) {
    trainer.add_observer<EarlyStopping>(
        watch, PatienceOptions{.patience = options.patience, .delta = options.min_delta});
  }
  std::shared_ptr<BestWeights> best;
  if (options.keep_best) {
    best = trainer.add_observer<BestWeights>(watch, [&folder](const BestWeights& better) {
      folder->write("best.pt", pickled_weights(better.parameters(), better.buffers()));
    });
  }
  if (from) {
    trainer.load_state(from->state);
    const std::string difference = kernel_difference(from->state, kernels_in_use());
    if (!difference.empty()) fmt::print(stderr, "rubato train: {}\n", difference);
    write_origin(*folder, options, trace);
  }
  const auto planned_faults = trainer.add_observer<PlannedFaults>(
      trainer.options().faults.planned, StepIndex{trainer.result().steps});
  std::shared_ptr<Progress> progress;
  if (!options.quiet) {
    print_opening(options, data, trace);
    print_kernels();
    if (options.resume) print_resumption(trainer.result(), from);
    std::fflush(stdout);
    const std::int64_t minibatch = options.elasticity.minibatch;
    progress = trainer.add_observer<Progress>(
        stdout, ProgressOptions{.epochs = options.epochs,
                                .samples_per_epoch = data.train.size() / minibatch * minibatch,
                                .terminal = isatty(STDOUT_FILENO) == 1,
                                .log_steps = options.log_steps});
  }
  const auto signals = trainer.add_observer<SignalWatch>();
  const auto interval = parse_checkpoint_interval(options.checkpoint_every);
  const auto checkpointer = std::make_shared<Checkpointer>(
      *checkpoints, interval.value_or(CheckpointInterval()), [metrics] { metrics->flush(); });
  if (interval) trainer.add_observer(checkpointer);
  const auto write_checkpoint = [&] {
    return checkpointer->write(trainer.result().steps, trainer.state());
  };

  RunSummary summary;
  summary.options = trainer.options();
  summary.versions = versions();
  summary.kernels = kernels_in_use();
  summary.kernels_wanted = options.kernels;
  summary.kernel_start = kernel_start();
  summary.model = options.model;
  summary.data = options.data;
  summary.trace = trace.source();
  std::optional<Diverged> failure;
  try {
    trainer.fit();
  } catch (const Diverged& diverged) {
    failure = diverged;
    summary.stopped = diverged.what();
  } catch (const OutputError& error) {
    if (progress) progress->finish();
    throw OutputError(error.what() + way_out(*checkpoints, *folder, trainer));
  } catch (const std::exception& error) {
    const auto memory = memory_failure(error, kLessMemory);
    if (!memory) throw;
    if (progress) progress->finish();
    throw MemoryError(*memory +
                      way_out_of_memory(*checkpoints, *folder, trainer, write_checkpoint));
  }
  if (progress) progress->finish();
  if (!failure && signals->received() != 0) {
    return interrupted(signals->received(), trainer.result(), write_checkpoint(), *folder);
  }
  summary.wall_seconds = record->wall_seconds();
  summary.result = trainer.result();
  if (!failure) summary.stopped = summary.result.stopped;
  summary.weights_sha256 = sha256_of(trainer.parameters());
  summary.gradient_buffers = trainer.gradient_buffers();
  folder->write("weights.pt", pickled_weights(trainer.parameters(), trainer.buffers()));
  folder->write("summary.json", to_json(summary));
  // Last, as what it is for, more epochs, is not lost with it.
  if (!failure && interval) write_checkpoint();

  if (failure) {
    fmt::print(stderr,
               "rubato train: {}\ntry a lower --lr or another --rule\nmetrics are kept in {}\n",
               failure->what(), folder->path().string());
    return ExitCode::diverged;
  }
  for (const std::string& line : planned_faults->missed(summary.result.steps)) {
    fmt::print(stderr, "rubato train: {}\n", line);
  }
  if (!options.quiet) print_closing(summary, best.get(), *folder);
  return missed(options, summary.result) ? ExitCode::target_missed : ExitCode::good;
}

}  // namespace rubato::app
