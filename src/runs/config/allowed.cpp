// The checks of data ask only for what the options need: a test set, classes, images, real targets.
// The shape of samples is checked for built-in models alone; the trial before training tests all
// other models (docs/adr/0018). Steps of a trace are planned in full by a Planner. The steps of a
// modelled cluster depend on its clock, so a Walk takes them as training would, up to 100,000 of
// them, and only if devices that run out are an error. Only the upper bound of a batch policy is
// known in advance.

#include "allowed.hpp"

#include <string>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include <rubato/steps/availability.hpp>
#include <rubato/steps/plan.hpp>
#include <rubato/steps/random.hpp>
#include <rubato/steps/step_source.hpp>
#include <rubato/steps/walk.hpp>

#include "chosen_parts.hpp"
#include "runs/config/values/loss_choice.hpp"
#include "runs/config/values/model_choice.hpp"

namespace rubato {

namespace {

std::string model_of(const RunConfiguration& run) {
  return "model " + run.model.text();
}

// Augmentations would move or mirror columns of a table, too, so they are refused for samples that
// are not images.
void require_images(const RunConfiguration& run, const KnownData& data) {
  if (run.augment.empty()) return;
  if (!data.has_tokens && (data.dimensions == 2 || data.dimensions == 3)) return;
  refuse("augment " + run.augment.text(),
         fmt::format("the samples of {}, {}, are not images", run.data.text(), data.description),
         "with samples of height x width or channels x height x width");
}

// Refuses everything that needs a test set.
void require_no_test(const RunConfiguration& run) {
  const std::string why = fmt::format("there is no test set in {}", run.data.text());
  constexpr std::string_view kAccepted = "with --validation, or data that have one";
  if (run.target_accuracy) refuse("target-accuracy", why, kAccepted);
  if (run.top_k > 0) refuse("top-k", why, kAccepted);
  if (test_metrics_of(run) != TestMetrics()) refuse("metric", why, kAccepted);
  const auto watched = watched_metric(run).metric();
  if ((run.keep_best || run.patience > 0) && watched && *watched != Metric::train_loss) {
    refuse(run.keep_best ? "keep-best" : "patience", why,
           "with --validation, data that have one, or --watch train-loss");
  }
}

// Refuses everything that needs classes.
void require_no_classes(const RunConfiguration& run) {
  const std::string why = fmt::format("the targets of {} are not classes", run.data.text());
  constexpr std::string_view kAccepted = "with data of classes";
  const TestMetrics metrics = test_metrics_of(run);
  if (run.target_accuracy) refuse("target-accuracy", why, kAccepted);
  if (run.top_k > 0) refuse("top-k", why, kAccepted);
  if (metrics.accuracy || metrics.perplexity || metrics.top_k > 0) {
    refuse("metric", why, "mse, or with data of classes");
  }
  if ((run.keep_best || run.patience > 0) && watched_metric(run) == Metric::test_accuracy) {
    refuse("watch test-accuracy", why, kAccepted);
  }
  require_loss_of_numbers(run);
}

// Refuses everything that needs the numbers of classes, and not their probabilities.
void require_no_class_numbers(const RunConfiguration& run) {
  const std::string why = fmt::format(
      "the targets of {} are probabilities, and not the numbers of classes", run.data.text());
  if (run.loss->ignore) refuse("loss " + run.loss.text(), why, "without ignore");
  const TestMetrics metrics = test_metrics_of(run);
  const std::string_view metric = metrics.perplexity ? "perplexity" : metrics.mse ? "mse" : "";
  if (metric.empty()) return;
  refuse(fmt::format("metric {}", metric), why,
         "accuracy and top-k, which take the largest as the class");
}

// Refuses samples that rubato's own models cannot be made for.
void require_samples(const RunConfiguration& run, const KnownData& data) {
  const bool has_sequences = data.has_tokens && data.dimensions == 1;
  if (has_sequences && run.model->takes_tokens) {
    if (data.vocabulary > 0) return;
    refuse(model_of(run),
           fmt::format("the tokens of {} are not sequences with a class for each token",
                       run.data.text()),
           "y of the shape of x, and tokens from 0 to 999999");
  }
  if (!data.has_one_target) {
    refuse(model_of(run),
           fmt::format("it takes one class, or some real numbers, for each sample, and {} has {} "
                       "targets for each",
                       run.data.text(), data.targets),
           "transformer of tokens, or script:FILE");
  }
  constexpr std::size_t kMostDimensions = 3;
  if (data.dimensions > kMostDimensions && !run.model->in_eigen) {
    refuse(model_of(run), fmt::format("samples of {} dimensions", data.dimensions),
           "channels x height x width, height x width, or features");
  }
  if (data.classes == 0 && !data.probabilities && !run.model->takes_real_targets) {
    refuse(model_of(run),
           fmt::format("it tells classes apart, and the targets of {} are real numbers",
                       run.data.text()),
           "mlp or script:FILE");
  }
}

}  // namespace

void require_loss_of_numbers(const RunConfiguration& run) {
  const std::string why = fmt::format("the targets of {} are real numbers", run.data.text());
  if (run.loss->of_classes) {
    refuse("loss " + run.loss.text(), why + ", and integers would be classes",
           "mse, bce or script:FILE");
  }
  if (run.label_smoothing > 0) refuse("label-smoothing", why, "with data of classes");
}

void require_data(const RunConfiguration& run, const KnownData& data) {
  require_images(run, data);
  if (!data.has_test) require_no_test(run);
  if (data.probabilities) {
    require_no_class_numbers(run);
  } else if (data.classes == 0) {
    require_no_classes(run);
  } else if (test_metrics_of(run).mse) {
    refuse("metric mse", fmt::format("the targets of {} are classes", run.data.text()),
           "accuracy, top-k, perplexity, or with data of real targets");
  }
  if (!run.model->script && !run.model->is_own()) require_samples(run, data);
}

namespace {

void require_room(const RunConfiguration& run, std::int64_t samples) {
  if (!has_batch_policy(run) || run.remainder == Remainder::carry) return;
  // The bound must hold whatever the trace offers.
  const std::int64_t largest = batch_policy_of(run)->max_batch(0);
  const std::int64_t epoch = samples / run.minibatch * run.minibatch;
  if (largest <= epoch) return;
  refuse("batch " + run.batch.text(),
         fmt::format("a batch of {} samples is larger than an epoch ({})", largest, samples),
         fmt::format("batches of at most {}, or more with --remainder carry", epoch));
}

// Checks that a trace has all steps that the epochs need.
void require_rows(const RunConfiguration& run, const Trace& trace,
                  std::optional<std::int64_t> samples) {
  const Planner planner(trace, plan_options(run, samples.value_or(kMaxDatasetSize), 0));
  if (samples) require_epochs(planner, run.epochs);
}

}  // namespace

void require_availability(const RunConfiguration& run, const RunSteps& loaded) {
  if (const auto* const trace = std::get_if<Trace>(&loaded)) {
    if (run.availability.empty()) return;
    refuse("availability", trace->source() + " already says what every step is",
           "with a file of availability (docs/traces.md) or a generator (rubato list generators)");
  }
  if (run.clock == Clock::real) return;
  const AvailabilityChoice& steps = *run.availability;
  const std::string option = "availability " + run.availability.text();
  if (steps->seconds_per_step || steps->steps_per_sample) {
    refuse(option, "in modelled time a step lasts as long as the cluster takes for it",
           fmt::format("without {}, or with --clock real",
                       steps->seconds_per_step ? "seconds-per-step" : "steps-per-sample"));
  }
  if (steps->on_zero != OnZero::drop) {
    refuse(option, "modelled time continues without devices",
           "without on-zero (--on-idle says what follows), or with --clock real");
  }
}

void require_steps(const RunConfiguration& run, const KnownSteps& known) {
  if (known.samples) require_room(run, *known.samples);
  const auto* const trace = std::get_if<Trace>(&known.steps);
  if (trace != nullptr && !has_batch_policy(run)) {
    require_rows(run, *trace, known.samples);
    return;
  }
  const auto source = known.source();
  // The number of steps that --iterations takes is known only in training.
  if (trace != nullptr || has_batch_policy(run) || run.iterations || !known.samples) return;
  if (std::get<Zones>(known.steps).end() != TraceEnd::error) return;
  // Hosts and people wait for this: a training of a million epochs begins without all of its steps.
  constexpr std::int64_t kMostSteps = 100'000;
  Walk walk(*source, plan_options(run, *known.samples, run.epochs), budget_of(run));
  while (walk.epoch().value() < run.epochs && walk.step().value() < kMostSteps &&
         !walk.budget_is_reached() && !walk.has_ended()) {
    if (walk.next() != nullptr) {
      walk.take();
    } else {
      walk.end_epoch();
    }
  }
}

}  // namespace rubato
