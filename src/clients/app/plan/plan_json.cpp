#include <algorithm>

#include <nlohmann/json.hpp>

#include <rubato/steps/random.hpp>

#include "base/core/text/or_null.hpp"
#include "plan_output.hpp"

namespace rubato::app {

namespace {

using Json = nlohmann::ordered_json;

MinibatchRun share_of(const StepPlan& step, CoreRank core, Assignment assignment) {
  return core.value() < step.cores ? step.share_of(core, assignment) : MinibatchRun{};
}

Json core_json(const EpochPlan& epoch, CoreRank core, Assignment assignment, SampleOrder* samples) {
  Json assignments = Json::array();
  Json indices = Json::array();
  for (const StepPlan& step : epoch.steps) {
    const MinibatchRun run = share_of(step, core, assignment);
    if (samples != nullptr) samples->prepare(epoch.index, step);
    Json minibatches = Json::array();
    for (std::int64_t i = 0; i < run.count; ++i) {
      minibatches.push_back(run[i].value());
      if (samples != nullptr) indices.push_back(samples->minibatch(step, run[i]));
    }
    assignments.push_back(std::move(minibatches));
  }
  Json json{{"core", core.value()}, {"assignments", std::move(assignments)}};
  if (samples != nullptr) json["indices"] = std::move(indices);
  return json;
}

Json epoch_json(const PlanOptions& plan, const EpochPlan& epoch, const PlanView& view) {
  Json json{{"epoch", epoch.index.value()},
            {"trace_range", {epoch.first_step().value(), epoch.end_step().value()}},
            {"batch_sizes", Json::array()},
            {"cores", Json::array()}};
  std::int64_t most_cores = 0;
  for (const StepPlan& step : epoch.steps) {
    json["batch_sizes"].push_back(step.batch_size);
    most_cores = std::max(most_cores, step.cores);
  }
  std::optional<SampleOrder> samples;
  if (view.indices) samples.emplace(plan.dataset_size, plan.minibatch_size, view.seed);
  for (CoreRank core; core.value() < most_cores; ++core) {
    json["cores"].push_back(core_json(epoch, core, view.assignment, samples ? &*samples : nullptr));
  }
  return json;
}

}  // namespace

std::string plan_json(const PlanOptions& plan, std::span<const EpochPlan> epochs,
                      const PlanView& view) {
  // Each epoch is a line of its own, which is short enough to read, and only one epoch at a time is
  // held as a tree.
  std::string text = "{\"epochs\": [";
  for (const EpochPlan& epoch : epochs) {
    if (&epoch != epochs.data()) text += ',';
    text += '\n' + json_text(epoch_json(plan, epoch, view));
  }
  return text + "\n]}\n";
}

}  // namespace rubato::app
