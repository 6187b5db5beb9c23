#include <iterator>

#include <fmt/format.h>

#include "app/config_file.hpp"
#include "app/trace_option.hpp"
#include "app/train_options.hpp"

namespace rubato::app {

namespace {

using std::filesystem::path;

// Relative where `file` is inside `folder`, else absolute.
std::string path_text(const path& file, const path& folder) {
  const path whole = std::filesystem::absolute(file).lexically_normal();
  const path inside =
      whole.lexically_relative(std::filesystem::absolute(folder).lexically_normal());
  return inside.empty() || *inside.begin() == ".." ? whole.string() : inside.string();
}

}  // namespace

std::string to_config(const TrainCommandOptions& options, const path& folder) {
  const ElasticityOptions& elasticity = options.elasticity;
  const auto images = mnist_folder(options);
  const auto trace = trace_file(elasticity.trace);
  std::string text = "# Reproduces the run: rubato train --config FILE\n";
  const auto put = [&](std::string_view name, const auto& value) {
    fmt::format_to(std::back_inserter(text), "{} = {}\n", name, value);
  };
  put("data", toml_string(images ? "mnist:" + path_text(*images, folder) : options.data));
  put("model", toml_string(options.model));
  put("trace", toml_string(trace ? path_text(*trace, folder) : elasticity.trace));
  if (elasticity.on_trace_end) {
    put("on-trace-end", toml_string(choice_name(kTraceEnds, *elasticity.on_trace_end)));
  }
  put("cores", elasticity.cores);
  put("minibatch", elasticity.minibatch);
  put("assignment", toml_string(choice_name(kAssignments, elasticity.assignment)));
  put("init", toml_string(options.initializer));
  put("precision", toml_string(options.precision));
  put("operators", toml_string(options.operators));
  put("augment-shift", options.augment_shift);
  put("label-smoothing", options.label_smoothing);
  put("rule", toml_string(options.rule));
  put("ref-batch", options.reference_batch);
  put("lr", options.learning_rate);
  put("schedule", toml_string(options.schedule));
  put("schedule-unit", toml_string(options.schedule_unit));
  put("optimizer", toml_string(options.optimizer));
  if (options.momentum) put("momentum", *options.momentum);
  put("nesterov", options.nesterov);
  put("weight-decay", options.weight_decay);
  if (!options.no_decay.empty()) put("no-decay", toml_string(options.no_decay));
  if (options.clip_norm) put("clip-norm", *options.clip_norm);
  if (options.clip_value) put("clip-value", *options.clip_value);
  put("lookahead", options.lookahead);
  put("lookahead-alpha", options.lookahead_alpha);
  put("lookahead-start", toml_string(options.lookahead_start));
  put("epochs", options.epochs);
  if (options.iterations) put("iterations", *options.iterations);
  put("seed", options.seed);
  put("watch", toml_string(options.watch));
  put("patience", options.patience);
  put("min-delta", options.min_delta);
  put("keep-best", options.keep_best);
  put("top-k", options.top_k);
  put("reduce", toml_string(options.reduce));
  put("kernels", toml_string(options.kernels));
  put("threads", options.threads);
  put("exact", options.exact);
  put("checkpoint-every", toml_string(options.checkpoint_every));
  put("keep", options.keep);
  if (!options.fault.empty()) put("fault", toml_string(options.fault));
  if (!options.faults.empty()) put("faults", toml_string(options.faults));
  if (!options.straggler.empty()) put("straggler", toml_string(options.straggler));
  if (options.target_accuracy && options.target_best) {
    put("target-accuracy", toml_string(fmt::format("{},best", *options.target_accuracy)));
  } else if (options.target_accuracy) {
    put("target-accuracy", *options.target_accuracy);
  }
  put("log-steps", options.log_steps);
  put("log-noise", options.log_noise);
  put("log-minibatches", options.log_minibatches);
  if (!options.monitor.empty()) put("monitor", toml_string(options.monitor));
  put("monitor-every", options.monitor_every);
  return text;
}

}  // namespace rubato::app
