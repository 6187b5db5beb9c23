// This file has what all engines share. make_trainer() checks patterns of names against the
// parameters of the model, which exist only then. evaluate() and predict() use a trainer whose
// steps are never taken (idle_trainer()), and weights that come from a run must have the SHA-256 of
// its summary.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
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

#include "base/core/check.hpp"
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
  if (all.sampler.weights) {
    all.sampler = workload.sampler();
    if (!all.sampler) {
      refuse("sampler " + configuration.sampler.text(), "there are no data with weights or classes",
             "shuffle or in-order");
    }
    RUBATO_CHECK(all.sampler.weights == options.sampler.weights,
                 "the workload was loaded for this sampler");
  }
  Trainer trainer = workload.make_trainer(std::move(steps), all);
  for (const std::string& pattern : no_decay_patterns(configuration.no_decay)) {
    if (pattern != kVectorsPattern) require_match(trainer, "no-decay", pattern);
  }
  for (const RateFactor& of : options.rate_factors) {
    if (of.pattern != kVectorsPattern) require_match(trainer, "lr-for", of.pattern);
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
