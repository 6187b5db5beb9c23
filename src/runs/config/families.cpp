// all_families() is the table of everything that users can choose by name; each module provides the
// rows of its own strategies. The lists of this file are made once and never change, while
// families(extensions) appends the user's own strategies of a configuration on each call.
// RuleRegistry knows the built-in names of rules; the other registries get those of their options
// from the constructor of Extensions.

#include <array>
#include <iterator>
#include <map>

#include <rubato/loop/gradient_transform.hpp>
#include <rubato/loop/images.hpp>
#include <rubato/loop/libtorch_options.hpp>
#include <rubato/loop/model_options.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/reducer.hpp>
#include <rubato/loop/test_metrics.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/numbers/lr_schedule.hpp>
#include <rubato/numbers/rule.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/availability.hpp>
#include <rubato/steps/batch_policies.hpp>
#include <rubato/steps/market_policy.hpp>

#include "numbers/collective/schedule.hpp"
#include "runs/config/values/data_source.hpp"
#include "runs/config/values/loss_choice.hpp"
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
  return {
      {"models", "--model", "the models", model_strategies()},
      {"losses", "--loss", "what is minimised",
       strategies_of(losses(),
                     [](const LossEntry& loss, Spec& spec) {
                       LossChoice read;
                       if (loss.read != nullptr) loss.read(spec, read);
                     })},
      {"data", "--data", "the training data", data_sources()},
      {"samplers", "--sampler", "which samples an epoch shows, and in what order", samplers()},
      {"traces", "--trace", "the global batch size, and the cores, of every step", trace_sources()},
      {"generators", "--trace", "generated devices over time", availability_generators()},
      {"policies", "--availability",
       "how devices over time, from a file or a generator, become steps", scaling_policies()},
      {"batch-policies", "--batch", "what decides the batch size of each step during training",
       batch_policies()},
      {"markets", "--market", "whose devices the imagined cluster has", market_policies()},
      {"rules", "--rule", "the learning rate of a step of scale S: its batch size / --ref-batch",
       rules()},
      {"schedules", "--schedule",
       "the factor of the learning rate at x, in --schedule-unit; join several with + "
       "to multiply them",
       lr_schedules()},
      {"optimizers", "--optimizer", "how the update follows from the gradient", optimizers()},
      {"transforms", "--transform",
       "how the mean gradient of a step is changed after clipping; join several "
       "with +",
       transforms()},
      {"initializers", "--init", "initial weights of parameters with two and more dimensions",
       initializers()},
      {"augmentations", "--augment",
       "random changes of training images, anew in each epoch; join several with +",
       augmentations()},
      {"metrics", "--metric",
       "what to measure on the test set besides the loss; join several with +", test_metrics()},
      {"precisions", "--precision", "precision of forward and backward", precisions()},
      {"reducers", "--reduce",
       "how the gradients of the minibatches are summed; the all-reduce algorithms "
       "(rubato list algorithms) are reducers, too",
       reducers()},
      {"algorithms", "--reduce", "all-reduce algorithms, between the cores' own sums",
       all_reduce_algorithms()}};
}

std::vector<Strategy> own_rules(const RuleRegistry& rules) {
  std::vector<Strategy> all = rules.strategies();
  all.erase(all.begin(), all.begin() + std::ssize(rule_names()));
  return all;
}

// The built-in names of each option, which the user's own parts cannot have.

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
