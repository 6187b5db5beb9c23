// A step is taken in this order: the sampler gives the order of the samples, the schedule gives the
// factor of the learning rate and perhaps the momentum, and the step engine computes and applies
// the update. What the engine does not know is added to its record afterwards: the progress in
// iterations, the time, and the noise if it is measured. part() names the part that may be a user's
// own while it is called, for messages about what it throws. rate_part() is the entry of the rule,
// the schedule and the learning rate in the list of step parts.

#include "step_taker.hpp"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "loop/train/checked_options.hpp"
#include "loop/train/checked_parts.hpp"
#include "loop/train/trainer_stage.hpp"
#include "step_part.hpp"

namespace rubato {

namespace {

// The progress that the schedule depends on.
TrainingProgress progress_of(const Walk& walk, std::int64_t dataset_size) {
  return {.epochs = walk.epoch().value(),
          .epoch_samples = walk.epoch_samples(),
          .dataset_size = dataset_size,
          .steps = walk.step().value(),
          .samples = walk.samples(),
          .iterations = walk.iterations()};
}

// The settings of a step that has not been taken.
StepSettings settings_of(const NextStep& next, Training& training, const Listeners& listeners,
                         QuietStretches& quiet) {
  StepSettings settings{.epoch = next.epoch, .quiet = &quiet};
  if (listeners.any_wants_gradients(next.plan)) {
    settings.inspect = [&](std::span<const NamedArray> gradients) {
      listeners.ask([&](Observer& observer) {
        if (!observer.wants_gradients(next.plan)) return;
        observer.on_gradients(training, next.plan, gradients);
      });
    };
  }
  settings.on_fault = [&](const StepPlan& attempted, std::span<const FaultRecord> faults,
                          std::int64_t cores_left) {
    // Observers may remember lines of records, which are part of a state.
    quiet.interrupt([&] {
      listeners.ask(
          [&](Observer& observer) { observer.on_fault(training, attempted, faults, cores_left); });
    });
  };
  return settings;
}

}  // namespace

StepTaker::StepTaker(Objective& objective, Workers& workers, const TrainOptions& options,
                     const StepRange& steps)
    : options_(options),
      rule_(options.rule.make()),
      schedule_(schedule_of(options)),
      engine_(make_step_engine({objective, workers, *rule_, *schedule_}, options, steps)),
      noise_(options.groups.size() + 1),
      order_(objective.samples(), options.minibatch_size, options.seed, options.sampler) {}

StepRecord StepTaker::run(const NextStep& next, const Walk& walk, Training& training,
                          const Listeners& listeners, QuietStretches& quiet,
                          std::function<void()> before_change) {
  const StepPlan& plan = next.plan;
  enter("sampler");
  order_.prepare(next.epoch, plan);
  enter("schedule");
  const double position =
      position_of(progress_of(walk, training.objective().samples()), options_.schedule_unit);
  const double factor = schedule_->factor(position);
  const std::optional<double> momentum = schedule_->momentum(position);
  require_applicable(factor, momentum,
                     options_.own_schedule ? "of your own" : options_.schedule.text(),
                     place_of(next.epoch, plan.index));
  enter({});
  StepSettings settings = settings_of(next, training, listeners, quiet);
  settings.enter = [this](std::string_view part) { enter(part); };
  settings.base_learning_rate = own_rate_.value_or(options_.learning_rate) * factor;
  settings.momentum = momentum;
  settings.digest =
      options_.digest_every > 0 && (plan.index.value() + 1) % options_.digest_every == 0;
  settings.before_change = std::move(before_change);
  StepOutcome outcome = engine_->run(plan, order_, settings);
  StepRecord& record = outcome.record;
  record.iterations = walk.iterations() + (record.applied ? record.gain : 0);
  record.time = next.time;
  record.decision_inputs = next.decision_inputs;
  if (options_.log_noise && record.applied) noise_.measure(outcome, options_.minibatch_size);
  return std::move(record);
}

void StepTaker::set_learning_rate(double rate) {
  require_applicable_rate(rate);
  own_rate_ = rate;
}

void StepTaker::visit_state(StateVisitor& state, const std::set<std::string_view>& forgotten) {
  engine_->visit_state(state, forgotten.contains("optimizer"));
  if (!forgotten.contains("rule")) {
    state.numbers("rule", *rule_, fmt::format("rule {}", rule_->name()));
  }
  if (!forgotten.contains("schedule")) state.numbers("schedule", *schedule_, "the schedule");
  noise_.visit_state(state);
  if (!forgotten.contains("rate")) state.optional("own_learning_rate", own_rate_);
  if (state.loading() && own_rate_) require_applicable_rate(*own_rate_);
}

StepPart rate_part() {
  return {
      .bound = [](const TrainOptions& options) -> std::vector<BoundValue> {
        const auto anew = [](std::string_view name, std::string value, std::string_view memory) {
          return BoundValue{
              .name = name, .value = std::move(value), .on_fork = OnFork::anew, .memory = memory};
        };
        return {
            {"reference_batch_size", fmt::to_string(options.reference_batch_size), OnFork::free},
            anew("rule", options.rule.text(), "rule"),
            anew("schedule", options.own_schedule ? "the user's own" : options.schedule.text(),
                 "schedule"),
            anew("schedule_unit", std::string(choice_name(kScheduleUnits, options.schedule_unit)),
                 "schedule"),
            anew("watch", options.watch.name(), "schedule"),
            // It may be one that an observer has set.
            anew("learning_rate", fmt::to_string(options.learning_rate), "rate")};
      },
      .conflicts = {{.choice = "schedule",
                     .why = [](const StepChoices& step) -> std::string {
                       const bool moves = step.moves_momentum && !step.has_momentum;
                       return moves ? "it moves the momentum, and the optimizer has none" : "";
                     },
                     .accepted = "with a momentum above 0, with optimizer adam, adamw or muon, or "
                                 "with cycle-momentum=false"}},
      .columns =
          [] {
            return std::vector<RecordColumn<StepRecord>>{
                {{.name = "lr",
                  .help = "learning rate, with the factor of `--memory momentum=samples`",
                  .tag = "train/lr",
                  .progress = {.label = "lr", .worth = 3, .width = 8, .significant = true},
                  .figure = {kRateSection, "Learning rate"}},
                 &StepRecord::learning_rate},
                {{.name = "gain",
                  .help = "how many steps of the reference batch size the step counts for",
                  .tag = "train/gain",
                  .figure = {kRateSection, "Gain", "of the rule"}},
                 &StepRecord::gain}};
          },
      .columns_after = "scale"};
}

}  // namespace rubato
