#include <rubato/config/families.hpp>
#include <rubato/policy/batch_policies.hpp>
#include <rubato/recipe/augmentation_options.hpp>
#include <rubato/recipe/initializer_options.hpp>
#include <rubato/recipe/optimizer_options.hpp>
#include <rubato/recipe/precision.hpp>
#include <rubato/recipe/test_metrics.hpp>
#include <rubato/runtime/reducer.hpp>
#include <rubato/scaling/lr_schedule.hpp>
#include <rubato/scaling/rule_registry.hpp>
#include <rubato/trace/availability_steps.hpp>
#include <rubato/trace/generators.hpp>

#include "collective/schedule.hpp"
#include "config/data_source.hpp"
#include "config/engine.hpp"
#include "config/loss.hpp"
#include "config/trace_source.hpp"

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
           .strategies = strategies_of(losses(), [](const LossEntry&, Spec&) {})},
          {.name = "data",
           .option = "--data",
           .help = "the training data",
           .strategies = data_sources()},
          {.name = "traces",
           .option = "--trace",
           .help = "the global batch size, and the cores, of every step",
           .strategies = trace_sources()},
          {.name = "generators",
           .option = "--trace",
           .help = "devices over time, made up",
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

}  // namespace

std::span<const Family> families() {
  static const std::vector<Family> all = all_families();
  return all;
}

const Family& family(std::string_view name) {
  for (const Family& candidate : families()) {
    if (candidate.name.ends_with('s') &&
        name == std::string_view(candidate.name).substr(0, candidate.name.size() - 1)) {
      return candidate;
    }
  }
  return find_row("family", name, families());
}

}  // namespace rubato
