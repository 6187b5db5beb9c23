// This file has what all engines share. train_options() maps a configuration to TrainOptions, and
// is where a new option of training has to be passed on; make_trainer() checks patterns of names
// against the parameters of the model, which exist only then. evaluate() and predict() use a
// trainer whose steps are never taken (idle_trainer()), and weights that come from a run must have
// the SHA-256 of its summary.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/faults.hpp>
#include <rubato/loop/observers.hpp>
#include <rubato/runs/run_folder.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/file.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "loop/optim/make_optimizer.hpp"
#include "run_data.hpp"
#include "runs/config/allowed.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/config/run_option.hpp"
#include "runs/config/values/loss_choice.hpp"
#include "runs/config/values/model_choice.hpp"

namespace rubato {

namespace {

constexpr std::string_view kVectors = "vectors";

std::vector<std::string> patterns_of(const std::string& no_decay) {
  std::vector<std::string> patterns;
  std::istringstream text(no_decay);
  for (std::string pattern; std::getline(text, pattern, ',');) patterns.push_back(pattern);
  return patterns;
}

std::vector<ParameterGroup> parameter_groups(const std::string& no_decay) {
  std::vector<ParameterGroup> groups;
  for (const std::string& pattern : patterns_of(no_decay)) {
    groups.push_back(pattern == kVectors ? no_decay_for_vectors() : no_decay_for(pattern));
  }
  return groups;
}

std::optional<LookaheadOptions> lookahead_options(const RunConfiguration& options) {
  if (options.lookahead == 0) return std::nullopt;
  return LookaheadOptions{.k = options.lookahead,
                          .alpha = options.lookahead_alpha,
                          .start = options.lookahead_start,
                          .weights = options.lookahead_weights};
}

// Empty if all parts of the schedule are built-in, which the library makes from its text.
std::function<std::unique_ptr<LrSchedule>()> own_schedule(const RunConfiguration& options) {
  const bool own = std::ranges::any_of(options.schedule->names(), [&](std::string_view name) {
    return options.extensions.schedules.find(name) != nullptr;
  });
  if (!own) return {};
  return [schedule = options.schedule, watch = watched_metric(options)] {
    return schedule->make(watch);
  };
}

void require_match(const Trainer& trainer, std::string_view option, const std::string& pattern) {
  try {
    static_cast<void>(matching(trainer.objective().parameters(), pattern));
  } catch (const Error& error) {
    throw_error("--{}: {}", option, error.what());
  }
}

}  // namespace

ByteSource Workload::weights(std::span<const NamedArray> parameters,
                             std::span<const NamedArray> buffers) const {
  return [parameters, buffers](const ByteSink& sink) {
    State state;
    for (const NamedArray& array : parameters) put_array(state, "", array);
    for (const NamedArray& array : buffers) put_array(state, "", array);
    stream_state(state, sink);
  };
}

ArrayCopies Workload::predict(const Trainer& /*trainer*/, Prediction /*what*/) const {
  throw_error("{} does not predict; accepted: the workload of libtorch", engine().engine);
}

TrainOptions train_options(const RunConfiguration& options) {
  FaultOptions faults = *options.faults;
  faults.planned = *options.fault;
  const TestMetrics metrics = test_metrics_of(options);
  // In modelled time stragglers are part of the cluster, and nobody waits for them here.
  std::vector<Straggler> stragglers;
  if (options.clock == Clock::real) stragglers = *options.straggler;
  return {.epochs = options.epochs,
          .budget = budget_of(options),
          .minibatch_size = options.minibatch,
          .remainder = options.remainder,
          .learning_rate = options.learning_rate,
          .reference_batch_size = options.reference_batch,
          .rule = *options.rule,
          .adjustments = {.memories = *options.memory,
                          .decay = options.decay_rule,
                          .on_batch_change = *options.on_batch_change},
          .schedule = *options.schedule,
          .schedule_unit = options.schedule_unit,
          .own_schedule = own_schedule(options),
          .watch = watched_metric(options),
          .optimizer = optimizer_options(options),
          .own_optimizer = options.optimizer->own.value_or(OwnOptimizer()),
          .groups = parameter_groups(options.no_decay),
          .lookahead = lookahead_options(options),
          .ema_half_life = options.ema,
          .clip_norm = options.clip_norm,
          .clip_value = options.clip_value,
          .gradient_transforms = *options.transform,
          .sampler = *options.sampler,
          .seed = options.seed,
          .top_k = metrics.top_k,
          .mse = metrics.mse,
          .perplexity = metrics.perplexity,
          .log_noise = options.log_noise,
          .digest_every = options.digest->every,
          .metrics = options.metric->own,
          .log_minibatches = options.log_minibatches,
          .cores = options.cores,
          .assignment = options.assignment,
          .reduce = options.reduce->own ? "auto" : options.reduce.text(),
          .own_reducer = options.reduce->own.value_or(OwnReducer()),
          .exact = options.exact,
          .faults = std::move(faults),
          .stragglers = std::move(stragglers),
          .threads = static_cast<int>(options.threads)};
}

namespace {

// The bytes per target with which --metric asks for bits per byte; 0 if it does not.
double asked_bytes_per_target(const Workload& workload, const RunConfiguration& configuration) {
  if (!test_metrics_of(configuration).bits_per_byte) return 0;
  const auto fail = [](const std::string& why, std::string_view accepted) {
    refuse("metric bits-per-byte", why, accepted);
  };
  const double bytes = workload.bytes_per_target();
  if (bytes == 0) {
    fail(fmt::format("a target of {} stands for no bytes of a text", configuration.data.text()),
         "perplexity, or with --data text:FILE or sentences");
  }
  const Parsed<LossChoice> loss = loss_of(configuration);
  const bool is_cross_entropy = loss->name == "nll" || loss->name == "cross-entropy";
  if (!is_cross_entropy || loss->ignore || !loss->class_weights.empty()) {
    fail(fmt::format("the loss {} is not the cross entropy of all tokens", loss.text()),
         "with --loss cross-entropy, or nll of log-probabilities");
  }
  return bytes;
}

}  // namespace

Trainer make_trainer(const Workload& workload, const RunConfiguration& configuration,
                     std::unique_ptr<StepSource> steps, const TrainOptions& options) {
  TrainOptions all = options;
  all.bytes_per_target = asked_bytes_per_target(workload, configuration);
  Trainer trainer = workload.make_trainer(std::move(steps), all);
  for (const std::string& pattern : patterns_of(configuration.no_decay)) {
    if (pattern != kVectors) require_match(trainer, "no-decay", pattern);
  }
  const std::string elements = facts_of(options.optimizer.method).elements;
  if (!elements.empty()) require_match(trainer, "optimizer", elements);
  if (!configuration.monitor.empty()) require_match(trainer, "monitor", configuration.monitor);
  if (configuration.tensorboard && !configuration.histograms.empty()) {
    require_match(trainer, "histograms", configuration.histograms);
  }
  return trainer;
}

void require_weights_of_summary(const std::filesystem::path& weights,
                                std::span<const NamedArray> parameters) {
  const std::filesystem::path summary_file = weights / RunFolder::kSummary;
  std::error_code ignored;
  if (weights.empty() || !std::filesystem::is_regular_file(summary_file, ignored)) return;
  std::string wanted;
  try {
    wanted = read_summary(summary_file).weights_sha256;
  } catch (const Error&) {
    // A damaged summary names no weights.
  }
  if (wanted.empty()) {
    throw_error("{}: names no weights; accepted: what the run wrote, or --weights FILE",
                summary_file.string());
  }
  const std::string found = sha256_of(parameters);
  if (found == wanted) return;
  const std::string file = weights_file(weights).string();
  throw_error(
      "{}: its weights have the SHA-256 {}, and {} says {}; accepted: the weights that the run "
      "wrote, or --weights {} for these",
      file, found, summary_file.filename().string(), wanted, file);
}

namespace {

// A trainer whose steps are never taken.
Trainer idle_trainer(const Workload& workload, const RunConfiguration& configuration) {
  Trainer trainer = workload.make_trainer(std::make_unique<TraceSource>(Trace::constant(1)),
                                          {.minibatch_size = 1,
                                           .seed = configuration.seed,
                                           .threads = static_cast<int>(configuration.threads)});
  require_weights_of_summary(configuration.weights, trainer.parameters());
  return trainer;
}

}  // namespace

RunConfiguration evaluation_configuration(const RunConfiguration& run,
                                          const std::filesystem::path& weights) {
  RunConfiguration configuration;
  configuration.extensions = run.extensions;
  for (const RunOption* option : run_options(Commands::evaluate)) {
    if (const auto text = option->text(run)) option->set(configuration, *text);
  }
  configuration.weights = weights;
  return configuration;
}

Evaluation evaluate(const Workload& workload, const RunConfiguration& configuration) {
  const Trainer trainer = idle_trainer(workload, configuration);
  if (!trainer.objective().has_test()) {
    throw_error("there is no test set in {}; accepted: with --validation, or data that have one",
                configuration.data.text());
  }
  const TestMetrics metrics = test_metrics_of(configuration);
  return trainer.objective().test(
      trainer.workers(),
      {.top_k = metrics.top_k,
       .mse = metrics.mse,
       .perplexity = metrics.perplexity,
       .bytes_per_target = asked_bytes_per_target(workload, configuration)},
      "");
}

ArrayCopies predict(const Workload& workload, const RunConfiguration& configuration,
                    Prediction what) {
  return workload.predict(idle_trainer(workload, configuration), what);
}

}  // namespace rubato
