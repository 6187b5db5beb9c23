#include "data_facts.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "runs/config/allowed.hpp"
#include "runs/config/values/model_choice.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/run/workload/run_data.hpp"
#include "runs/run/workload/run_steps.hpp"

namespace rubato {

namespace {

double share_of_largest_class(const SampleSet& samples, std::int64_t classes) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes));
  std::vector<std::int64_t> targets(static_cast<std::size_t>(samples.targets.elements()));
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    read_numbers(samples.targets.type(), samples.target(i), targets.data());
    for (const std::int64_t target : targets) ++counts[static_cast<std::size_t>(target)];
  }
  const auto most = static_cast<double>(*std::ranges::max_element(counts));
  return most / (static_cast<double>(samples.size()) * static_cast<double>(targets.size()));
}

// Configurations with the same key have the same data.
std::string data_key(const RunConfiguration& configuration) {
  const auto& held = configuration.validation;
  return fmt::format("data {} {} {}", configuration.data.text(), held ? held->share : 0,
                     held ? held->seed : 0);
}

}  // namespace

const DataFacts::Facts& DataFacts::facts_of(const RunConfiguration& configuration) {
  if (configuration.model->is_own()) {
    throw Error(
        "--model own: each run is a process of its own, without the model of another program; "
        "accepted: the name of a model (rubato list models)");
  }
  const bool classifies = configuration.model->classifies;
  const std::string key = classifies ? data_key(configuration) : configuration.model.text();
  if (const auto found = facts_.find(key); found != facts_.end()) return found->second;
  Facts facts{.measure = {.is_accuracy = classifies}};
  if (classifies) {
    const DataSets data = load_data(configuration);
    if (!data.test) {
      throw Error(
          fmt::format("--data {}: it has no test set to compare by; accepted: with --validation",
                      configuration.data.text()));
    }
    facts.measure.is_accuracy = data.classes > 0;
    if (data.classes > 0) facts.measure.chance = share_of_largest_class(*data.test, data.classes);
    facts.samples = data.train.size();
    facts.shape = shape_of(data);
  } else {
    facts.samples = configuration.model->own_samples().value();
  }
  return facts_.emplace(key, facts).first->second;
}

const Measure& DataFacts::measure_of(const RunConfiguration& configuration) {
  return facts_of(configuration).measure;
}

void DataFacts::require_steps(const RunConfiguration& configuration) {
  // This check depends on neither the seed nor the rule nor the learning rate, so configurations
  // that differ only in these are checked once.
  RunConfiguration same = configuration;
  same.seed = 0;
  same.rule = "constant";
  same.learning_rate = 1;
  if (!checked_.insert(to_toml(same)).second) return;
  const Facts& facts = facts_of(configuration);
  const RunSteps steps = load_run_steps(configuration);
  rubato::require_steps(configuration, {.steps = steps, .samples = facts.samples, .source = [&] {
                                          return make_step_source(
                                              configuration, steps,
                                              known_gradient_bytes(configuration, facts.shape));
                                        }});
}

void DataFacts::require_runnable(std::span<const PlannedRun> runs) {
  for (const PlannedRun& run : runs) {
    try {
      require_steps(run.configuration);
    } catch (const Error& error) {
      throw Error(fmt::format("{} (of the run {})", error.what(), run.name));
    }
    if (measure_of(run.configuration).is_accuracy ==
        measure_of(runs.front().configuration).is_accuracy) {
      continue;
    }
    throw Error(
        fmt::format("--model: {} has an accuracy, and {} has none; accepted: models that "
                    "have one, or models that have none",
                    runs.front().configuration.model.text(), run.configuration.model.text()));
  }
}

}  // namespace rubato
