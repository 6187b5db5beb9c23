#include <memory>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/workload.hpp>

#include "evaluated_run.hpp"
#include "runs/config/options/run_option.hpp"

namespace rubato {

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
    throw Error(
        fmt::format("there is no test set in {}; accepted: with --validation, or data that "
                    "have one",
                    configuration.data.text()));
  }
  const TestMetrics metrics = test_metrics_of(configuration);
  return trainer.objective().test(
      trainer.workers(),
      {.top_k = metrics.top_k, .mse = metrics.mse, .perplexity = metrics.perplexity}, "");
}

ArrayCopies predict(const Workload& workload, const RunConfiguration& configuration,
                    Prediction what) {
  return workload.predict(idle_trainer(workload, configuration), what);
}

}  // namespace rubato
