#include <array>
#include <iterator>
#include <map>

#include <rubato/loop/gradient_transform.hpp>
#include <rubato/loop/images.hpp>
#include <rubato/loop/model_options.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/reducer.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/loop/training_options.hpp>
#include <rubato/numbers/lr_schedule.hpp>
#include <rubato/numbers/rule.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/availability.hpp>
#include <rubato/steps/batch_policies.hpp>

#include "numbers/collective/schedule.hpp"
#include "runs/config/values/data_source.hpp"
#include "runs/config/values/model_choice.hpp"
#include "runs/config/values/trace_source.hpp"

namespace rubato {

namespace {

std::vector<Strategy> model_strategies() {
  return strategies_of(models(), [](const ModelEntry& model, Spec& spec) {
    if (model.read != nullptr) static_cast<void>(model.read(spec));
  });
}

std::vector<Family> all_families() {
  return {{.name = "models",
           .option = "--model",
           .help = "the models",
           .strategies = model_strategies()},
          {.name = "losses",
           .option = "--loss",
           .help = "what is minimised",
           .strategies = strategies_of(losses(),
                                       [](const LossEntry& loss, Spec& spec) {
                                         LossChoice read;
                                         if (loss.read != nullptr) loss.read(spec, read);
                                       })},
          {.name = "data",
           .option = "--data",
           .help = "the training data",
           .strategies = data_sources()},
          {.name = "samplers",
           .option = "--sampler",
           .help = "which samples an epoch shows, and in what order",
           .strategies = samplers()},
          {.name = "traces",
           .option = "--trace",
           .help = "the global batch size, and the cores, of every step",
           .strategies = trace_sources()},
          {.name = "generators",
           .option = "--trace",
           .help = "generated devices over time",
           .strategies = availability_generators()},
          {.name = "policies",
           .option = "--availability",
           .help = "how devices over time, from a file or a generator, become steps",
           .strategies = scaling_policies()},
          {.name = "batch-policies",
           .option = "--batch",
           .help = "what decides the batch size of each step during training",
           .strategies = batch_policies()},
          {.name = "rules",
           .option = "--rule",
           .help = "the learning rate of a step of scale S: its batch size / --ref-batch",
           .strategies = rules()},
          {.name = "schedules",
           .option = "--schedule",
           .help = "the factor of the learning rate at x, in --schedule-unit; join several with + "
                   "to multiply them",
           .strategies = lr_schedules()},
          {.name = "optimizers",
           .option = "--optimizer",
           .help = "how the update follows from the gradient",
           .strategies = optimizers()},
          {.name = "transforms",
           .option = "--transform",
           .help = "how the mean gradient of a step is changed after clipping; join several "
                   "with +",
           .strategies = transforms()},
          {.name = "initializers",
           .option = "--init",
           .help = "initial weights of parameters with two and more dimensions",
           .strategies = initializers()},
          {.name = "augmentations",
           .option = "--augment",
           .help = "random changes of training images, anew in each epoch; join several with +",
           .strategies = augmentations()},
          {.name = "metrics",
           .option = "--metric",
           .help = "what to measure on the test set besides the loss; join several with +",
           .strategies = test_metrics()},
          {.name = "precisions",
           .option = "--precision",
           .help = "precision of forward and backward",
           .strategies = precisions()},
          {.name = "reducers",
           .option = "--reduce",
           .help = "how the gradients of the minibatches are summed; the all-reduce algorithms "
                   "(rubato list algorithms) are reducers, too",
           .strategies = reducers()},
          {.name = "algorithms",
           .option = "--reduce",
           .help = "all-reduce algorithms, between the cores' own sums",
           .strategies = all_reduce_algorithms()}};
}

std::vector<Strategy> own_rules(const RuleRegistry& rules) {
  std::vector<Strategy> all = rules.strategies();
  all.erase(all.begin(), all.begin() + std::ssize(rule_names()));
  return all;
}

// The built-in names of each option, which the user's own parts cannot have.

std::vector<std::string_view> optimizer_names() {
  return {kOptimizerNames.begin(), kOptimizerNames.end()};
}

std::vector<std::string_view> metric_names() {
  static const std::vector<Strategy> all = test_metrics();
  return row_names(all);
}

std::vector<std::string_view> all_reducer_names() {
  std::vector<std::string_view> names{"auto"};
  names.insert(names.end(), reducer_names().begin(), reducer_names().end());
  return names;
}

}  // namespace

std::span<const Family> families() {
  static const std::vector<Family> all = all_families();
  return all;
}

std::vector<Family> families(const Extensions& extensions) {
  const std::map<std::string_view, std::vector<Strategy>> own{
      {"rules", own_rules(extensions.rules)},
      {"schedules", extensions.schedules.strategies()},
      {"optimizers", extensions.optimizers.strategies()},
      {"transforms", extensions.transforms.strategies()},
      {"samplers", extensions.samplers.strategies()},
      {"reducers", extensions.reducers.strategies()},
      {"metrics", extensions.metrics.strategies()},
      {"batch-policies", extensions.batch_policies.strategies()},
      {"data", extensions.data.strategies()}};
  std::vector<Family> all(families().begin(), families().end());
  for (Family& family : all) {
    const auto found = own.find(family.name);
    if (found == own.end()) continue;
    family.strategies.insert(family.strategies.end(), found->second.begin(), found->second.end());
  }
  return all;
}

Extensions::Extensions()
    : schedules("schedule", lr_schedule_names),
      optimizers("optimizer", optimizer_names),
      transforms("gradient transform", transform_names),
      samplers("sampler", sampler_names),
      reducers("reducer", all_reducer_names),
      metrics("metric", metric_names),
      batch_policies("batch policy", batch_policy_names),
      data("data set", all_data_names) {}

bool operator==(const Extensions& a, const Extensions& b) {
  const auto names = [](const Extensions& extensions) {
    return std::array{extensions.rules.names(),      extensions.schedules.names(),
                      extensions.optimizers.names(), extensions.transforms.names(),
                      extensions.samplers.names(),   extensions.reducers.names(),
                      extensions.metrics.names(),    extensions.batch_policies.names(),
                      extensions.data.names()};
  };
  return names(a) == names(b);
}

const Family& family(std::string_view name, std::span<const Family> among) {
  for (const Family& candidate : among) {
    if (candidate.name.ends_with('s') &&
        name == std::string_view(candidate.name).substr(0, candidate.name.size() - 1)) {
      return candidate;
    }
  }
  return find_row("family", name, among);
}

}  // namespace rubato
