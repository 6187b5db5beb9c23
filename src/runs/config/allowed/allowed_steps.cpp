#include <string>
#include <variant>

#include <fmt/format.h>

#include <rubato/steps/availability.hpp>
#include <rubato/steps/modelled_time.hpp>
#include <rubato/steps/plan.hpp>
#include <rubato/steps/random.hpp>
#include <rubato/steps/step_source.hpp>

#include "allowed.hpp"
#include "runs/config/values/batch_policy.hpp"

namespace rubato {

namespace {

void require_room(const RunConfiguration& run, std::int64_t samples) {
  if (!has_batch_policy(run) || run.remainder == Remainder::carry) return;
  // The bound must hold whatever the trace offers.
  const std::int64_t largest = batch_policy_of(run)->max_batch(0);
  const std::int64_t epoch = samples / run.minibatch * run.minibatch;
  if (largest <= epoch) return;
  refuse("batch " + run.batch,
         fmt::format("a batch of {} samples is larger than an epoch ({})", largest, samples),
         fmt::format("max of at most {}, or more with --remainder carry", epoch));
}

// Checks that a trace has all steps that the epochs need.
void require_rows(const RunConfiguration& run, const Trace& trace,
                  std::optional<std::int64_t> samples) {
  const Planner planner(trace, {.dataset_size = samples.value_or(kMaxDatasetSize),
                                .minibatch_size = run.minibatch,
                                .cores = run.cores,
                                .remainder = run.remainder});
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
  const AvailabilitySteps steps = parse_availability_steps(run.availability, run.minibatch);
  const std::string option = "availability " + run.availability;
  if (steps.seconds_per_step || steps.steps_per_sample) {
    refuse(option, "in modelled time a step lasts as long as the cluster takes for it",
           fmt::format("without {}, or with --clock real",
                       steps.seconds_per_step ? "seconds-per-step" : "steps-per-sample"));
  }
  if (steps.on_zero != OnZero::drop) {
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
  if (std::get<Availability>(known.steps).end() != TraceEnd::error) return;
  static_cast<void>(simulate(*source,
                             {.dataset_size = *known.samples,
                              .minibatch_size = run.minibatch,
                              .cores = run.cores,
                              .remainder = run.remainder,
                              .epochs = run.epochs},
                             {}, budget_of(run)));
}

}  // namespace rubato
