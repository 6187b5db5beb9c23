#include "experiment/data_facts.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/plan/plan.hpp>
#include <rubato/recipe/quadratic_options.hpp>

#include "config/batch_policy.hpp"
#include "config/engine.hpp"
#include "config/run_option.hpp"
#include "config/trace_source.hpp"
#include "run/images.hpp"

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

void DataFacts::require_trace(const RunConfiguration& configuration) {
  std::string key;
  for (const std::string_view name :
       {"data", "model", "trace", "availability", "on-trace-end", "cores", "minibatch", "remainder",
        "epochs", "batch", "ref-batch"}) {
    key += run_option(name).text(configuration).value_or("") + '\n';
  }
  if (!checked_.emplace(key, true).second) return;
  // By a policy nobody knows which rows there will be.
  if (has_batch_policy(configuration)) {
    require_room_for_batches(configuration, facts_of(configuration).samples);
    return;
  }
  const Planner planner(load_trace(configuration), {.dataset_size = facts_of(configuration).samples,
                                                    .minibatch_size = configuration.minibatch,
                                                    .cores = configuration.cores,
                                                    .remainder = configuration.remainder});
  require_epochs(planner, configuration.epochs);
}

void DataFacts::require_runnable(std::span<const PlannedRun> runs) {
  for (const PlannedRun& run : runs) {
    try {
      require_trace(run.configuration);
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
