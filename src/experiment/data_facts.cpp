#include "experiment/data_facts.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <variant>

#include <fmt/format.h>

#include <rubato/config/configuration_file.hpp>
#include <rubato/core/error.hpp>
#include <rubato/plan/plan.hpp>
#include <rubato/recipe/quadratic_options.hpp>

#include "config/batch_policy.hpp"
#include "config/engine.hpp"
#include "config/trace_source.hpp"
#include "run/images.hpp"
#include "run/step_source.hpp"

namespace rubato {

namespace {

double share_of_largest_class(const ImageSet& images) {
  std::array<std::int64_t, std::numeric_limits<std::uint8_t>::max() + 1> counts{};
  for (const std::uint8_t label : images.labels) ++counts[label];
  const auto most = static_cast<double>(*std::ranges::max_element(counts));
  return images.count == 0 ? 0 : most / static_cast<double>(images.count);
}

}  // namespace

const DataFacts::Facts& DataFacts::facts_of(const RunConfiguration& configuration) {
  if (configuration.model == kOwn) {
    throw Error(
        "--model own: runs that are processes have no model of another program's; accepted: the "
        "name of a model (rubato list models)");
  }
  const bool classifies = model_entry(configuration.model).classifies;
  const std::string key = classifies ? "data " + configuration.data : configuration.model;
  if (const auto found = facts_.find(key); found != facts_.end()) return found->second;
  Facts facts{.measure = {.is_accuracy = classifies}};
  if (classifies) {
    const TrainTestImages images = load_images(configuration);
    facts.measure.chance = share_of_largest_class(images.test);
    facts.samples = images.train.count;
  } else {
    facts.samples = parse_quadratic(configuration.model).samples;
  }
  return facts_.emplace(key, facts).first->second;
}

const Measure& DataFacts::measure_of(const RunConfiguration& configuration) {
  return facts_of(configuration).measure;
}

void DataFacts::require_steps(const RunConfiguration& configuration) {
  // Neither seed nor rates say anything of the steps.
  RunConfiguration same = configuration;
  same.seed = 0;
  same.rule = "constant";
  same.learning_rate = 1;
  if (!checked_.insert(to_toml(same)).second) return;
  const std::int64_t samples = facts_of(configuration).samples;
  const RunSteps steps = load_run_steps(configuration);
  require_room_for_batches(configuration, samples);
  // By a policy nobody knows which rows there will be.
  if (has_batch_policy(configuration)) return;
  if (const Trace* const trace = std::get_if<Trace>(&steps)) {
    const Planner planner(*trace, {.dataset_size = samples,
                                   .minibatch_size = configuration.minibatch,
                                   .cores = configuration.cores,
                                   .remainder = configuration.remainder});
    require_epochs(planner, configuration.epochs);
    return;
  }
  const std::int64_t parameters = model_entry(configuration.model).parameters(configuration.model);
  require_devices(configuration, steps, parameters * std::int64_t{sizeof(float)}, samples);
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
                    runs.front().configuration.model, run.configuration.model));
  }
}

}  // namespace rubato
