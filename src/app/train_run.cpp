#include "app/train_run.hpp"

#include <chrono>
#include <cstdio>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <rubato/core/stopwatch.hpp>
#include <rubato/data/digits.hpp>
#include <rubato/data/idx.hpp>
#include <rubato/model/builtin_models.hpp>
#include <rubato/report/metrics.hpp>
#include <rubato/report/progress.hpp>
#include <rubato/report/run_folder.hpp>
#include <rubato/report/summary.hpp>
#include <rubato/report/weights.hpp>
#include <rubato/train/best_weights.hpp>
#include <rubato/train/dataset.hpp>
#include <rubato/train/early_stopping.hpp>
#include <rubato/train/environment.hpp>
#include <rubato/train/losses.hpp>
#include <rubato/train/monitor.hpp>
#include <rubato/train/trainer.hpp>

#include "app/run_folder.hpp"
#include "app/trace_option.hpp"

namespace rubato::app {

namespace {

struct Data {
  TensorDataset train;
  TensorDataset test;
  ImageShape shape;
};

Data load_data(const TrainCommandOptions& options) {
  const auto folder = mnist_folder(options);
  const TrainTestImages images = folder ? read_idx_folder(*folder) : builtin_digits();
  // Both sets by the training set's statistics: the test set is not known beforehand.
  const PixelStatistics statistics = pixel_statistics(images.train);
  return {.train = to_tensors(images.train, statistics),
          .test = to_tensors(images.test, statistics),
          .shape = {.height = images.train.height, .width = images.train.width}};
}

std::vector<ParameterGroup> parameter_groups(const std::string& no_decay) {
  std::vector<ParameterGroup> groups;
  std::istringstream patterns(no_decay);
  for (std::string pattern; std::getline(patterns, pattern, ',');) {
    groups.push_back(pattern == "vectors" ? no_decay_for_vectors() : no_decay_for(pattern));
  }
  return groups;
}

std::optional<LookaheadOptions> lookahead_options(const TrainCommandOptions& options) {
  if (options.lookahead == 0) return std::nullopt;
  return LookaheadOptions{
      .k = options.lookahead,
      .alpha = options.lookahead_alpha,
      .start = parse_choice("start", options.lookahead_start, kLookaheadStarts)};
}

TrainOptions trainer_options(const TrainCommandOptions& options) {
  return {.epochs = options.epochs,
          .iterations = options.iterations,
          .minibatch_size = options.elasticity.minibatch,
          .learning_rate = options.learning_rate,
          .reference_batch_size = options.reference_batch,
          .rule = options.rule,
          .schedule = options.schedule,
          .schedule_unit = parse_choice("unit", options.schedule_unit, kScheduleUnits),
          .watch = parse_choice("metric", options.watch, kMetrics),
          .optimizer = optimizer_options(options),
          .groups = parameter_groups(options.no_decay),
          .lookahead = lookahead_options(options),
          .clip_norm = options.clip_norm,
          .precision = parse_choice("precision", options.precision, kPrecisions),
          .initializer = parse_initializer(options.initializer),
          .seed = options.seed,
          .top_k = options.top_k,
          .log_noise = options.log_noise,
          .cores = options.elasticity.cores,
          .assignment = options.elasticity.assignment,
          .reduce = options.reduce,
          .threads = static_cast<int>(options.threads)};
}

// The configuration, and the trace as it was read, so that the folder alone reproduces the run.
void write_origin(const RunFolder& folder, TrainCommandOptions options, const Trace& trace) {
  if (trace_file(options.elasticity.trace)) {
    folder.write("trace.csv", trace.to_csv());
    options.elasticity.trace = folder.file("trace.csv").string();
  }
  folder.write("config.toml", to_config(options, folder.path()));
}

void print_opening(const TrainCommandOptions& options, const Data& data, const Trace& trace) {
  fmt::print("{} on {}: {} training and {} test images, trace {}\n", options.model, options.data,
             data.train.size(), data.test.size(), trace.source());
  fmt::print("rule {}, lr {} at batch {}, {}, minibatch {}, {} cores on {} threads, seed {}\n",
             options.rule, options.learning_rate, options.reference_batch, options.optimizer,
             options.elasticity.minibatch, options.elasticity.cores, options.threads, options.seed);
  std::fflush(stdout);
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

}  // namespace

ExitCode train(const TrainCommandOptions& options) {
  const auto path = options.out.value_or(default_run_folder(std::chrono::system_clock::now()));
  check_run_folder(path);
  if (!has_fast_blas()) {
    fmt::print(
        stderr,
        "rubato train: the BLAS in use is not known to be fast and may make training ten times "
        "slower\ninstall an OpenBLAS (Debian: libopenblas0) or see update-alternatives\n");
  }
  const Data data = load_data(options);
  const Trace trace = load_trace(options.elasticity.trace, options.elasticity.on_trace_end);
  Trainer trainer(builtin_model(options.model, data.shape), nll_loss(options.label_smoothing),
                  data.train, trace, trainer_options(options));
  trainer.set_test(data.test, nll_loss());

  // Before there is a run folder: it may find that no parameter is called so.
  MetricsWriter* metrics_of_monitor = nullptr;
  std::optional<Monitor> monitor;
  if (!options.monitor.empty()) {
    monitor.emplace(trainer, options.monitor, options.monitor_every,
                    [&](const StepPlan& step, std::span<const TensorStatistics> tensors) {
                      metrics_of_monitor->write(step, tensors);
                    });
    trainer.add_observer(*monitor);
  }

  const RunFolder folder(path);
  write_origin(folder, options, trace);
  MetricsWriter metrics(folder.file("metrics.jsonl"));
  metrics_of_monitor = &metrics;
  trainer.add_observer(metrics);
  const Metric watch = trainer.options().watch;
  std::optional<EarlyStopping> early_stopping;
  if (options.patience > 0) {
    early_stopping.emplace(
        trainer, watch, PatienceOptions{.patience = options.patience, .delta = options.min_delta});
    trainer.add_observer(*early_stopping);
  }
  std::optional<BestWeights> best;
  if (options.keep_best) {
    best.emplace(trainer, watch, [&] {
      folder.write("best.pt", pickled_weights(best->parameters(), best->buffers()));
    });
    trainer.add_observer(*best);
  }
  std::optional<Progress> progress;
  if (!options.quiet) {
    print_opening(options, data, trace);
    const std::int64_t minibatch = options.elasticity.minibatch;
    progress.emplace(stdout,
                     ProgressOptions{.epochs = options.epochs,
                                     .samples_per_epoch = data.train.size() / minibatch * minibatch,
                                     .terminal = isatty(STDOUT_FILENO) == 1,
                                     .log_steps = options.log_steps});
    trainer.add_observer(*progress);
  }

  RunSummary summary;
  summary.options = trainer.options();
  summary.versions = versions();
  summary.model = options.model;
  summary.data = options.data;
  summary.trace = trace.source();
  const Stopwatch wall;
  std::optional<Diverged> failure;
  try {
    trainer.fit();
  } catch (const Diverged& diverged) {
    failure = diverged;
    summary.stopped = diverged.what();
  }
  progress.reset();
  summary.wall_seconds = wall.seconds();
  summary.result = trainer.result();
  if (!failure) summary.stopped = summary.result.stopped;
  summary.weights_sha256 = sha256_of(trainer.parameters());
  summary.gradient_buffers = trainer.gradient_buffers();
  folder.write("weights.pt", pickled_weights(trainer.parameters(), trainer.buffers()));
  folder.write("summary.json", to_json(summary));

  if (failure) {
    fmt::print(stderr, "rubato train: {}\nmetrics are kept in {}\n", failure->what(),
               folder.path().string());
    return ExitCode::diverged;
  }
  if (!options.quiet) print_closing(summary, best ? &*best : nullptr, folder);
  return missed(options, summary.result) ? ExitCode::target_missed : ExitCode::good;
}

}  // namespace rubato::app
