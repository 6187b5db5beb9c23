#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/core/stopwatch.hpp>
#include <rubato/plan/shuffle.hpp>
#include <rubato/scaling/adascale.hpp>
#include <rubato/scaling/noise_scale.hpp>
#include <rubato/train/trainer.hpp>

#include "binding.hpp"
#include "checked_objective.hpp"
#include "checked_options.hpp"
#include "checked_rates.hpp"
#include "configuration.hpp"
#include "listeners.hpp"
#include "place.hpp"
#include "result_state.hpp"
#include "step_engine.hpp"

namespace rubato {

namespace {

Planner checked_planner(Trace trace, const Objective& objective, const TrainOptions& options) {
  Planner planner(std::move(trace), {.dataset_size = objective.samples(),
                                     .minibatch_size = options.minibatch_size,
                                     .cores = options.cores});
  require_epochs(planner, options.epochs);
  return planner;
}

constexpr const char* kConfiguration = "configuration";
constexpr std::string_view kParameter = "parameter.";
constexpr std::string_view kBuffer = "buffer.";

// The reason for which training has stopped.
std::string end_of_trace(std::int64_t steps) {
  return fmt::format("the trace ended after {} steps", steps);
}

std::unique_ptr<LrSchedule> make_schedule(const TrainOptions& options) {
  if (options.own_schedule) {
    auto own = options.own_schedule();
    if (own == nullptr) throw Error("own_schedule makes no schedule; accepted: any but null");
    return own;
  }
  auto schedule = make_lr_schedule(options.schedule, options.watch);
  require_rate(*schedule, options.schedule, options.schedule_unit);
  return schedule;
}

}  // namespace

Diverged::Diverged(std::string_view what, const StepRecord& step, std::string_view rule)
    : Error(fmt::format("{} at {} (batch {}, rule {}, lr {:.6g}){}", what,
                        place_of(step.epoch, step.plan.index), step.plan.batch_size, rule,
                        step.learning_rate, step.applied ? "" : "; the step was not applied")),
      step_(step) {}

class Trainer::Implementation final : public Training {
 public:
  Implementation(std::unique_ptr<Objective> objective, Trace trace, TrainOptions options)
      : options_(checked_options(std::move(options))),
        objective_(checked_objective(std::move(objective))),
        planner_(checked_planner(std::move(trace), *objective_, options_)),
        rule_(options_.rules.make(options_.rule)),
        schedule_(make_schedule(options_)),
        workers_(options_.dealing == Dealing::in_turns ? 1 : options_.threads),
        engine_(
            make_step_engine({*objective_, workers_, *rule_}, options_, planner_.largest_step())),
        configuration_(configuration_of(options_, *objective_)),
        gain_estimator_({}, options_.groups.size() + 1) {}

  TrainResult fit() {
    require_not_in_fit("fit()");
    require_usable("fit()");
    if (schedule_->watches() && !objective_->has_test() && options_.watch != Metric::train_loss) {
      throw Error(
          fmt::format("the schedule watches {}, but there is no test set; accepted: "
                      "train-loss",
                      choice_name(kMetrics, options_.watch)));
    }
    pausing_ = false;
    phase_ = Phase::training;
    try {
      train();
    } catch (const std::exception& error) {
      end_by(error.what());
      throw;
    } catch (...) {
      end_by("an exception that is no std::exception");
      throw;
    }
    phase_ = Phase::idle;
    return result_;
  }

  const TrainOptions& options() const override { return options_; }
  const TrainResult& result() const override { return result_; }
  const std::vector<NamedArray>& parameters() const override { return objective_->parameters(); }
  const std::vector<NamedArray>& buffers() const override { return objective_->buffers(); }
  Objective& objective() const override { return *objective_; }
  Workers& workers() const override { return workers_; }
  std::int64_t gradient_buffers() const { return engine_->gradient_buffers(); }
  void add_observer(std::shared_ptr<Observer> observer, std::optional<std::string> name) {
    require_not_in_fit("add_observer()");
    listeners_.add(*this, std::move(observer), std::move(name));
  }
  void stop(std::string reason) override {
    if (stopped()) return;
    result_.stopped = reason.empty() ? "stopped" : std::move(reason);
  }
  void pause() override { pausing_ = true; }
  bool has_state() const { return whole_ && phase_ != Phase::training; }
  State state() const override;
  void load(const State& state);

 private:
  // What the trainer is doing.
  enum class Phase { idle, training, between_steps };

  void require_not_in_fit(std::string_view what) const {
    if (phase_ == Phase::idle) return;
    throw Error(
        fmt::format("{} was called in the middle of fit(); accepted: before or after it", what));
  }
  // After an exception what is left of the step it ended is not gone on with.
  void require_usable(std::string_view what) const {
    if (thrown_.empty()) return;
    throw Error(
        fmt::format("{} cannot be called after {} has thrown; accepted: another trainer, which may "
                    "load the state of this one where has_state()",
                    what, thrown_));
  }

  // fit() throws.
  void end_by(std::string_view what) {
    phase_ = Phase::idle;
    thrown_ = "fit()";
    if (whole_) return;
    const EpochIndex epoch{result_.epochs};
    no_state_ = fmt::format("the update at {} was ended in its middle by '{}'",
                            place_of(epoch, StepIndex{result_.steps}), what);
  }

  void train() {
    try_out();
    while (!pausing_ && (epoch_ || begin_epoch())) {
      train_epoch();
      if (!pausing_) end_epoch();
    }
  }

  // The epoch in training. Its record says how many of its steps are done.
  struct Epoch {
    EpochPlan plan;
    EpochRecord record{};
    double loss_sum = 0;
    std::int64_t minibatches = 0;
  };

  void load_all(const State& state);

  // Finds what cannot work before anything is trained.
  void try_out() {
    if (tried_out_) return;
    tried_out_ = true;
    objective_->try_out(options_.minibatch_size);
  }

  [[nodiscard]] bool stopped() const { return !result_.stopped.empty(); }

  // Whether there is one.
  bool begin_epoch() {
    if (stopped() || result_.epochs >= options_.epochs) return false;
    std::optional<EpochPlan> plan = planner_.next();
    if (!plan) {
      stop_at_end_of_trace();
      return false;
    }
    epoch_ = {.plan = *std::move(plan)};
    epoch_->record.epoch = epoch_->plan.index;
    return true;
  }

  void stop_at_end_of_trace() { stop(end_of_trace(planner_.trace().length())); }

  // The part of the epoch that has been trained, while that is not the whole of it.
  [[nodiscard]] std::optional<EpochPart> part_of_epoch() const {
    const EpochPlan& plan = epoch_->plan;
    EpochPart part{.steps = epoch_->record.steps,
                   .samples = epoch_->record.samples,
                   .of_steps = static_cast<std::int64_t>(plan.steps.size())};
    if (part.steps == part.of_steps && plan.complete) return std::nullopt;
    if (!plan.complete) {
      part.of_steps +=
          (planner_.minibatches_per_epoch() - plan.minibatches()) / plan.steps.back().minibatches;
    }
    return part;
  }

  // What is left of its steps, until somebody wants to stop or pause.
  void train_epoch() {
    FirstException of_observers;
    listeners_.tell(of_observers,
                    [&](Observer& observer) { observer.on_epoch_begin(*this, epoch_->plan); });
    of_observers.rethrow();
    const EpochSamples samples(objective_->samples(), options_.minibatch_size, options_.seed,
                               epoch_->plan.index);
    EpochRecord& record = epoch_->record;
    Stopwatch stopwatch;
    while (!stopped() && !pausing_ && std::cmp_less(record.steps, epoch_->plan.steps.size())) {
      const StepPlan& plan = epoch_->plan.steps[static_cast<std::size_t>(record.steps)];
      try {
        last_step_ = run_step(epoch_->plan.index, plan, samples);
      } catch (...) {
        // Nor does what an observer wished in a step that is none.
        result_.stopped.clear();
        throw;
      }
      const StepRecord& step = last_step_;
      if (step.applied && options_.iterations && step.iterations >= *options_.iterations) {
        stop(fmt::format("{:.6g} iterations reached", *options_.iterations));
      }
      listeners_.tell(of_observers, [&](Observer& observer) { observer.on_step(*this, step); });
      if (!step.applied && !step.skipped) {
        result_.stopped.clear();
        of_observers.rethrow();
        throw_diverged(step);
      }
      count(step);
      const double seconds = stopwatch.lap();
      record.train_seconds += seconds;
      result_.train_seconds += seconds;
      whole_ = true;
      of_observers.rethrow();
      let_observers_look();
    }
  }

  [[noreturn]] void throw_diverged(const StepRecord& step) const {
    if (step.loss_scale) {
      throw Diverged(fmt::format("the loss scale fell below {}: step after step overflowed",
                                 objective_->loss_scale()->smallest),
                     step, options_.rule);
    }
    throw Diverged(std::isfinite(step.loss) ? "the gradient became infinite or NaN"
                                            : "the loss became " + in_words(step.loss),
                   step, options_.rule);
  }

  // A step that has been taken.
  void count(const StepRecord& step) {
    EpochRecord& record = epoch_->record;
    ++record.steps;
    record.samples += step.plan.batch_size;
    if (step.skipped) ++result_.skipped_steps;
    if (!step.skipped || std::isfinite(step.loss)) {
      epoch_->minibatches += step.plan.minibatches;
      epoch_->loss_sum += step.loss * static_cast<double>(step.plan.minibatches);
    }
    result_.samples += step.plan.batch_size;
    ++result_.steps;
    result_.iterations = step.iterations;
    result_.part = part_of_epoch();
    ++progress_.steps;
    progress_.samples += step.plan.batch_size;
    progress_.epoch_samples += step.plan.batch_size;
    progress_.iterations += step.gain;
  }

  void end_epoch() {
    const Stopwatch stopwatch;
    EpochRecord record = epoch_->record;
    record.train_loss = epoch_->loss_sum / static_cast<double>(epoch_->minibatches);
    if (objective_->has_test()) {
      record.test = objective_->test(
          workers_, {.top_k = options_.top_k},
          fmt::format(" of the test data after epoch {}", record.epoch.value() + 1));
    }
    record.test_seconds = stopwatch.seconds();
    std::optional<EpochPart> part = part_of_epoch();
    record.whole = !part;
    if (const auto metric = value_of(options_.watch, record)) tell_schedule(*metric);

    // From here on the epoch has ended, whatever observers say to it.
    result_.part = std::move(part);
    const bool ended = !epoch_->plan.complete;
    epoch_.reset();
    if (record.whole) {
      ++result_.epochs;
      ++progress_.epochs;
    }
    progress_.epoch_samples = 0;
    if (ended) stop_at_end_of_trace();
    FirstException of_observers;
    if (record.test) {
      note_test(*record.test);
      listeners_.tell(of_observers,
                      [&](Observer& observer) { observer.on_evaluate(*this, record); });
    }
    listeners_.tell(of_observers, [&](Observer& observer) { observer.on_epoch(*this, record); });
    of_observers.rethrow();
    if (record.test && !std::isfinite(record.test->loss)) {
      throw Diverged("the test loss became " + in_words(record.test->loss), last_step_,
                     options_.rule);
    }
    let_observers_look();
  }

  // All or nothing of it.
  void tell_schedule(double metric) {
    const std::vector<double> before = schedule_->state();
    whole_ = false;
    try {
      schedule_->observe(metric);
    } catch (...) {
      schedule_->load_state(before);
      whole_ = true;
      throw;
    }
    whole_ = true;
  }

  // Everybody has heard of the step or the epoch.
  void let_observers_look() {
    FirstException of_observers;
    phase_ = Phase::between_steps;
    listeners_.tell(of_observers, [&](Observer& observer) { observer.between_steps(*this); });
    phase_ = Phase::training;
    of_observers.rethrow();
  }

  void note_test(const Evaluation& test) {
    result_.final_test = test;
    if (test.accuracy) {
      result_.best_test_accuracy = std::max(result_.best_test_accuracy.value_or(0), *test.accuracy);
    }
  }

  StepRecord run_step(EpochIndex epoch, const StepPlan& plan, const EpochSamples& samples) {
    const double factor = schedule_->factor(position_of(progress_, options_.schedule_unit));
    require_applicable(factor, options_.own_schedule ? "of your own" : options_.schedule,
                       place_of(epoch, plan.index));
    StepSettings settings{.epoch = epoch, .base_learning_rate = options_.learning_rate * factor};
    settings.before_change = [this] { whole_ = false; };
    if (listeners_.any_wants_gradients(plan)) {
      settings.inspect = [&](std::span<const NamedArray> gradients) {
        listeners_.ask([&](Observer& observer) {
          if (observer.wants_gradients(plan)) observer.on_gradients(*this, plan, gradients);
        });
      };
    }
    settings.on_fault = [&](const StepPlan& attempted, std::span<const FaultRecord> faults,
                            std::int64_t cores_left) {
      listeners_.ask(
          [&](Observer& observer) { observer.on_fault(*this, attempted, faults, cores_left); });
    };
    const StepOutcome outcome = engine_->run(plan, samples, settings);
    StepRecord record{.epoch = epoch,
                      .plan = plan,
                      .assignment = options_.assignment,
                      .scale = static_cast<double>(plan.batch_size) /
                               static_cast<double>(options_.reference_batch_size),
                      .learning_rate = outcome.learning_rate,
                      .gain = outcome.gain,
                      .iterations = progress_.iterations + (outcome.applied ? outcome.gain : 0),
                      .gradient_norm = outcome.gradient_norm,
                      .loss = outcome.loss,
                      .applied = outcome.applied,
                      .loss_scale = outcome.loss_scale,
                      .skipped = outcome.skipped,
                      .minibatches = {outcome.minibatches.begin(), outcome.minibatches.end()},
                      .seconds = outcome.seconds};
    record.plan.cores = outcome.cores;
    if (options_.log_noise && outcome.applied) measure_noise(outcome, record);
    return record;
  }

  void measure_noise(const StepOutcome& outcome, StepRecord& record) {
    const std::int64_t minibatches = record.plan.minibatches;
    if (outcome.from_pair) {
      gain_estimator_.update_from_pair(outcome.groups, record.scale);
    } else {
      gain_estimator_.update(outcome.groups, minibatches, record.scale);
    }
    noise_scale_.update(outcome.groups, outcome.from_pair ? 2 : minibatches,
                        options_.minibatch_size);
    if (gain_estimator_.measured()) record.measured_gain = gain_estimator_.gain(record.scale);
    record.noise_scale = noise_scale_.value();
  }

  TrainOptions options_;
  std::unique_ptr<Objective> objective_;
  Planner planner_;
  std::unique_ptr<Rule> rule_;
  std::unique_ptr<LrSchedule> schedule_;
  // Mutable, as whoever may read a training may use its threads.
  mutable Workers workers_;
  std::unique_ptr<StepEngine> engine_;
  // What states are bound to.
  std::string configuration_;
  Listeners listeners_;
  // For StepRecord::measured_gain and noise_scale.
  AdaScaleEstimator gain_estimator_;
  NoiseScale noise_scale_;
  TrainingProgress progress_{.dataset_size = objective_->samples()};
  TrainResult result_;
  std::optional<Epoch> epoch_;
  bool tried_out_ = false;
  bool pausing_ = false;
  Phase phase_ = Phase::idle;
  // What has thrown, so that only the state is of use.
  std::string thrown_;
  // Why there is no state, where there is none.
  std::string no_state_;
  // Not in the middle of an update, nor of loading: what there is to remember fits together.
  bool whole_ = true;
  StepRecord last_step_;
};

State Trainer::Implementation::state() const {
  if (phase_ == Phase::training) {
    throw Error(
        "a state is taken between steps; accepted: in Observer::between_steps(), or outside "
        "of fit()");
  }
  if (!whole_) {
    throw Error(fmt::format("there is no state: {}; accepted: an earlier state", no_state_));
  }
  State state;
  state.put_text(kConfiguration, configuration_);
  for (const NamedArray& array : parameters()) put_array(state, kParameter, array);
  for (const NamedArray& array : buffers()) put_array(state, kBuffer, array);
  engine_->save(state);
  state.put("rule", rule_->state());
  state.put("schedule", schedule_->state());
  state.put("gain_estimator", gain_estimator_.state());
  state.put("noise_scale", noise_scale_.state());

  put_result(state, result_);
  if (result_.part && !epoch_) put_part(state, *result_.part);
  bind_state(state, planner_, result_, *objective_);
  const StepIndex next = epoch_ ? epoch_->plan.first_step() : planner_.next_step();
  state.put("epoch.first_step", next.value());
  if (epoch_) {
    state.put("epoch.steps", epoch_->record.steps);
    state.put("epoch.samples", epoch_->record.samples);
    state.put("epoch.minibatches", epoch_->minibatches);
    state.put("epoch.loss_sum", epoch_->loss_sum);
    state.put("epoch.train_seconds", epoch_->record.train_seconds);
  }
  listeners_.save(state);
  return state;
}

void Trainer::Implementation::load(const State& state) {
  require_not_in_fit("load_state()");
  require_usable("load_state()");
  if (result_.steps > 0 || epoch_) {
    throw Error(
        fmt::format("load_state() was called after {} steps; accepted: before anything is trained "
                    "or loaded",
                    result_.steps));
  }
  // Until all of it is there, there is none.
  whole_ = false;
  thrown_ = "load_state()";
  no_state_ = "load_state() has thrown";
  load_all(state);
  whole_ = true;
  thrown_.clear();
}

void Trainer::Implementation::load_all(const State& state) {
  require_same_configuration(state.text(kConfiguration), configuration_);
  for (const NamedArray& array : parameters()) read_array(state, kParameter, array);
  for (const NamedArray& array : buffers()) read_array(state, kBuffer, array);
  engine_->load(state);
  rule_->load_state(state.values<double>("rule"));
  schedule_->load_state(state.values<double>("schedule"));
  gain_estimator_.load_state(state.values<double>("gain_estimator"));
  noise_scale_.load_state(state.values<double>("noise_scale"));

  result_ = result_of(state);
  // What its trace has ended goes on where the trace does.
  const bool longer = planner_.trace().at(StepIndex{result_.steps}).has_value();
  if (longer && result_.stopped == end_of_trace(result_.steps)) result_.stopped.clear();
  const StepIndex epoch_begin{state.count("epoch.first_step")};
  const bool in_epoch = state.has("epoch.steps");
  progress_ = {.epochs = result_.epochs,
               .epoch_samples = in_epoch ? state.count("epoch.samples") : 0,
               .dataset_size = objective_->samples(),
               .steps = result_.steps,
               .samples = result_.samples,
               .iterations = result_.iterations};

  planner_.go_to(EpochIndex{result_.epochs}, epoch_begin);
  if (options_.epochs < result_.epochs + (in_epoch ? 1 : 0)) {
    throw Error(fmt::format(
        "{} epochs are asked for, but epoch {} has begun; accepted: at least {}", options_.epochs,
        result_.epochs + (in_epoch ? 1 : 0), result_.epochs + (in_epoch ? 1 : 0)));
  }
  require_bound(state, planner_, result_, epoch_begin, *objective_);
  if (in_epoch) {
    std::optional<EpochPlan> plan = planner_.next();
    const std::int64_t done = state.count("epoch.steps");
    if (!plan || std::cmp_greater(done, plan->steps.size())) {
      throw Error("the state is damaged: its epoch has more steps than the trace");
    }
    epoch_ = {.plan = *std::move(plan)};
    epoch_->record = {.epoch = epoch_->plan.index,
                      .steps = done,
                      .samples = state.count("epoch.samples"),
                      .test = {},
                      .train_seconds = state.value<double>("epoch.train_seconds")};
    epoch_->minibatches = state.count("epoch.minibatches");
    epoch_->loss_sum = state.value<double>("epoch.loss_sum");
    result_.part = part_of_epoch();
  } else {
    result_.part = part_of(state);
  }
  listeners_.load(*this, state);
}

Trainer::Trainer(std::unique_ptr<Objective> objective, Trace trace, TrainOptions options)
    : implementation_(std::make_unique<Implementation>(std::move(objective), std::move(trace),
                                                       std::move(options))) {}
Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

Trainer::Implementation& Trainer::own() const {
  if (implementation_ == nullptr) {
    throw Error("a trainer was used that was moved from; accepted: the one that it was moved to");
  }
  return *implementation_;
}
void Trainer::add_observer(std::shared_ptr<Observer> observer) {
  own().add_observer(std::move(observer), std::nullopt);
}
void Trainer::add_observer(std::shared_ptr<Observer> observer, std::string name) {
  own().add_observer(std::move(observer), std::move(name));
}
bool Trainer::has_state() const {
  return own().has_state();
}
State Trainer::state() const {
  return own().state();
}
void Trainer::load_state(const State& state) {
  own().load(state);
}
TrainResult Trainer::fit() {
  return own().fit();
}
const std::vector<NamedArray>& Trainer::parameters() const {
  return own().parameters();
}
const std::vector<NamedArray>& Trainer::buffers() const {
  return own().buffers();
}
const TrainResult& Trainer::result() const {
  return own().result();
}
const TrainOptions& Trainer::options() const {
  return own().options();
}
Objective& Trainer::objective() const {
  return own().objective();
}
Workers& Trainer::workers() const {
  return own().workers();
}
int Trainer::threads() const {
  return own().options().threads;
}
std::int64_t Trainer::gradient_buffers() const {
  return own().gradient_buffers();
}

}  // namespace rubato
