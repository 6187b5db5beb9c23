// An effect is the difference of two outcomes, number by number, and has no value where one of the
// two has none or is not finite. The rest of the file declares the JSON of `rubato whatif`: events
// get their numbers, from 1, only there, and each counterfactual its effects, first in the run's
// own order of samples and then, with --seeds, in the others.

#include <array>
#include <cmath>

#include <rubato/base/parse.hpp>

#include "base/core/of_part.hpp"
#include "base/core/seconds.hpp"
#include "base/core/text/output_fields.hpp"
#include "whatif.hpp"

namespace rubato {

namespace {

std::optional<double> difference(const std::optional<double>& one,
                                 const std::optional<double>& other) {
  if (!one || !other || !std::isfinite(*one) || !std::isfinite(*other)) return std::nullopt;
  return *one - *other;
}

std::optional<double> samples_to(const TrainingOutcome& outcome, const LearningTarget& target) {
  const auto* const epoch = outcome.reached(target);
  return epoch == nullptr ? std::nullopt : std::optional<double>(epoch->samples);
}

}  // namespace

Effect effect_of(const TrainingOutcome& run, const TrainingOutcome& without,
                 const LearningTarget& target) {
  Effect effect{.loss = difference(run.loss(), without.loss()),
                .accuracy = difference(run.accuracy(), without.accuracy()),
                .target_samples = difference(samples_to(run, target), samples_to(without, target)),
                .substeps = static_cast<double>(run.substeps - without.substeps)};
  if (run.time && without.time) {
    effect.hours = (run.time->seconds - without.time->seconds) / kSecondsOfHour;
    effect.money = run.time->money - without.time->money;
    effect.lost_seconds = run.lost_seconds() - without.lost_seconds();
  }
  return effect;
}

namespace {

std::optional<double> hours_of(const std::optional<double>& seconds) {
  return seconds ? std::optional(*seconds / kSecondsOfHour) : std::nullopt;
}

JsonForm<Effect> effect_form() {
  return form_of_object<Effect>(
      {{"loss", "at the end", &Effect::loss},
       {"accuracy", "at the end", &Effect::accuracy},
       {"target_samples", "until the target", &Effect::target_samples},
       {"hours", "modelled", &Effect::hours},
       {"money", "in modelled time", &Effect::money},
       {"lost_hours", "modelled: without devices, in lost steps and in restarts",
        [](const Effect& effect) { return hours_of(effect.lost_seconds); }},
       {"substeps", "minibatches of the busiest core", &Effect::substeps}});
}

constexpr std::array<Choice<RunEvent::Kind>, 4> kEventKinds{{{RunEvent::Kind::taken, "taken"},
                                                             {RunEvent::Kind::given, "given"},
                                                             {RunEvent::Kind::batch, "batch"},
                                                             {RunEvent::Kind::fault, "fault"}}};

// An event with its number, from 1.
struct NumberedEvent : RunEvent {
  std::size_t number = 0;
};

std::vector<NumberedEvent> numbered_events(const WhatIfResult& result) {
  std::vector<NumberedEvent> events;
  for (const RunEvent& event : result.events) events.push_back({event, events.size() + 1});
  return events;
}

std::optional<std::array<std::int64_t, 2>> batches_of_event(const RunEvent& event) {
  if (event.fault) return std::nullopt;
  return std::array{event.before.batch_size, event.after.batch_size};
}

std::optional<std::vector<std::int64_t>> cores_of_event(const RunEvent& event) {
  if (event.fault) return event.fault->cores;
  if (!event.before.cores || !event.after.cores) return std::nullopt;
  return std::vector{*event.before.cores, *event.after.cores};
}

JsonForm<NumberedEvent> event_form() {
  return form_of_object<NumberedEvent>(
      {{"number", "from 1, as --without names it", &NumberedEvent::number},
       {"kind", "devices were taken or given back, the batch alone changed, or cores died",
        &RunEvent::kind, form_of_choice(kEventKinds)},
       {"step", "the first step, from 1, that knows of it",
        [](const RunEvent& event) { return event.steps + 1; }},
       {"hours", "its modelled time; null in a trace of steps",
        [](const RunEvent& event) { return hours_of(event.seconds); }},
       {"words", "the event for people", &RunEvent::words},
       {"batch?", "before and after it", batches_of_event},
       {"cores?", "before and after it, or those that died", cores_of_event},
       {"minibatches_again?", "minibatches of the steps that were begun in vain",
        [](const RunEvent& event) {
          return event.fault ? std::optional(event.fault->minibatches) : std::nullopt;
        }}});
}

// A counterfactual with the effects of its events.
struct EffectiveCounterfactual : Counterfactual {
  std::vector<Effect> effects{};
};

std::vector<EffectiveCounterfactual> with_effects(const WhatIfResult& result) {
  std::vector<EffectiveCounterfactual> all;
  for (const Counterfactual& one : result.counterfactuals) {
    EffectiveCounterfactual added{one, {effect_of(result.run, one.outcome, result.target)}};
    for (std::size_t& event : added.events) ++event;
    for (const Counterfactual::OtherOrder& other : one.others) {
      added.effects.push_back(effect_of(other.run, other.outcome, result.target));
    }
    all.push_back(std::move(added));
  }
  return all;
}

constexpr std::array<Choice<bool>, 2> kLosses{{{true, "test"}, {false, "training"}}};

}  // namespace

JsonForm<WhatIfResult> whatif_form() {
  using Result = WhatIfResult;
  return form_of_object<Result>(
      {{"target_accuracy",
        "the accuracy, from 0 to 1, until which samples are counted; null if it is a loss",
        of_part(&Result::target, &LearningTarget::accuracy)},
       {"target_loss", "the loss until which samples are counted; null if it is an accuracy",
        of_part(&Result::target, &LearningTarget::loss)},
       {"loss_of", "what the losses are those of", &Result::has_test, form_of_choice(kLosses)},
       {"events_skipped", "events that are not left out alone, those with the smallest changes",
        of_part(&Result::plan, &WhatIfPlan::events_skipped)},
       {"run", "the run", &Result::run, outcome_form()},
       {"events", "its events, in their order", numbered_events, event_form()},
       {"counterfactuals", "the trainings without some of the events", with_effects,
        form_of_object<EffectiveCounterfactual>(
            {{"name", "the training for people", &Counterfactual::name},
             {"events", "numbers of those that it is without; empty if it has other options",
              &Counterfactual::events},
             {"steps_shared", "steps that it shares with the run", &Counterfactual::steps},
             {"same_bits", "whether its batches are those of the run, so that it was not trained",
              &Counterfactual::same_bits},
             {"outcome", "its outcome", &Counterfactual::outcome, outcome_form()},
             {"effects",
              "what the events changed: numbers of the run less those of this training, null if "
              "one of the two has none; with --seeds first for its own order of samples, then for "
              "the others",
              &EffectiveCounterfactual::effects, effect_form()}})}});
}

}  // namespace rubato
