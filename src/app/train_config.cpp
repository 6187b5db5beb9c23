#include <iterator>

#include <fmt/format.h>

#include "app/config_file.hpp"
#include "app/trace_option.hpp"
#include "app/train_options.hpp"

namespace rubato::app {

namespace {

std::string absolute_text(const std::filesystem::path& file) {
  return std::filesystem::absolute(file).lexically_normal().string();
}

}  // namespace

std::string to_config(const TrainCommandOptions& options) {
  const ElasticityOptions& elasticity = options.elasticity;
  const auto folder = mnist_folder(options);
  const auto trace = trace_file(elasticity.trace);
  std::string text = "# Reproduces the run: rubato train --config FILE\n";
  const auto put = [&](std::string_view name, const auto& value) {
    fmt::format_to(std::back_inserter(text), "{} = {}\n", name, value);
  };
  put("data", toml_string(folder ? "mnist:" + absolute_text(*folder) : options.data));
  put("model", toml_string(options.model));
  put("trace", toml_string(trace ? absolute_text(*trace) : elasticity.trace));
  if (elasticity.on_trace_end) {
    put("on-trace-end", toml_string(choice_name(kTraceEnds, *elasticity.on_trace_end)));
  }
  put("cores", elasticity.cores);
  put("minibatch", elasticity.minibatch);
  put("assignment", toml_string(choice_name(kAssignments, elasticity.assignment)));
  put("rule", toml_string(options.rule));
  put("ref-batch", options.reference_batch);
  put("lr", options.learning_rate);
  put("momentum", options.momentum);
  put("nesterov", options.nesterov);
  put("weight-decay", options.weight_decay);
  put("epochs", options.epochs);
  put("seed", options.seed);
  put("threads", options.threads);
  if (options.target_accuracy) put("target-accuracy", *options.target_accuracy);
  put("log-steps", options.log_steps);
  return text;
}

}  // namespace rubato::app
