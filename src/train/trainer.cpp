#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/core/stopwatch.hpp>
#include <rubato/plan/shuffle.hpp>
#include <rubato/scaling/adascale_estimator.hpp>
#include <rubato/train/trainer.hpp>

#include "binding.hpp"
#include "checked_objective.hpp"
#include "checked_parts.hpp"
#include "checked_rates.hpp"
#include "configuration.hpp"
#include "listeners.hpp"
#include "place.hpp"
#include "result_state.hpp"
#include "scaling/noise_scale.hpp"
#include "step_engine.hpp"

namespace rubato {

namespace {

constexpr const char* kConfiguration = "configuration";
constexpr std::string_view kParameter = "parameter.";
constexpr std::string_view kBuffer = "buffer.";

constexpr std::string_view kOwnRate = "own_learning_rate";

constexpr std::string_view kEndedBySource = "ended_by_source";

}  // namespace

Diverged::Diverged(std::string_view what, const StepRecord& step, std::string_view rule)
    : Error(fmt::format("{} at {} (batch {}, rule {}, lr {:.6g}){}", what,
                        place_of(step.epoch, step.plan.index), step.plan.batch_size, rule,
                        step.learning_rate, step.applied ? "" : "; the step was not applied")),
      step_(step) {}

class Trainer::Implementation final : public Training {
 public:
  Implementation(std::unique_ptr<Objective> objective, std::unique_ptr<StepSource> source,
                 TrainOptions options)
      : source_(checked_source(std::move(source))),
        options_(options_for(*source_, std::move(options))),
        objective_(checked_objective(std::move(objective))),
        walk_(*source_, plan_options(*objective_, options_), options_.budget),
        trace_(checked_trace(*source_, *objective_, options_)),
        rule_(options_.rules.make(options_.rule)),
        schedule_(schedule_of(options_)),
        workers_(options_.dealing == Dealing::in_turns ? 1 : options_.threads),
        engine_(make_step_engine({*objective_, workers_, *rule_}, options_,
                                 steps_to_come(*source_, walk_))),
        configuration_(configuration_of(options_, *objective_)),
        gain_estimator_({}, options_.groups.size() + 1) {}

  TrainResult fit() {
    require_not_in_fit("fit()");
    require_usable("fit()");
    require_trainable(*objective_, options_, *schedule_);
    pausing_ = false;
    stage_ = Stage::training;
    try {
      train();
    } catch (const std::exception& error) {
      end_by(error.what());
      throw;
    } catch (...) {
      end_by("an exception that is no std::exception");
      throw;
    }
    stage_ = Stage::idle;
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
  void set_learning_rate(double rate) override {
    require_applicable_rate(rate);
    own_rate_ = rate;
  }
  bool has_state() const { return whole_ && stage_ != Stage::training; }
  State state() const override;
  void load(const State& state);

 private:
  // What the trainer is doing.
  enum class Stage { idle, training, between_steps };

  void require_not_in_fit(std::string_view what) const {
    if (stage_ == Stage::idle) return;
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
    stage_ = Stage::idle;
    thrown_ = "fit()";
    if (whole_) return;
    no_state_ = fmt::format("the update at {} was ended in its middle by '{}'",
                            place_of(walk_.epoch(), walk_.step()), what);
  }

  void train() {
    try_out();
    while (!pausing_ && (epoch_ || begin_epoch())) {
      train_epoch();
      if (!pausing_) end_epoch();
    }
  }

  // What the walk does not say of the epoch in training.
  struct Epoch {
    EpochStart start;
    // That a whole one would have, where that is known.
    std::optional<std::int64_t> whole_steps{};
    double train_seconds = 0;
    // Of each step's mean loss times its minibatches in this epoch, and their samples.
    double loss_sum = 0;
    std::int64_t loss_samples = 0;
  };

  void load_all(const State& state);

  // Finds what cannot work before anything is trained.
  void try_out() {
    if (tried_out_) return;
    tried_out_ = true;
    objective_->try_out(options_.minibatch_size);
    // What the last minibatch has, where it is not whole.
    const std::int64_t rest = walk_.progress().samples_left.value_or(0) % options_.minibatch_size;
    if (rest > 0) objective_->try_out(rest);
  }

  [[nodiscard]] bool stopped() const { return !result_.stopped.empty(); }

  // Whether there is one.
  bool begin_epoch() {
    if (stopped() || walk_.epoch().value() >= options_.epochs) return false;
    // One that has all its samples already needs no further step.
    if (walk_.has_ended()) {
      end_by_source();
      return false;
    }
    epoch_ = new_epoch();
    add_loss(walk_.epoch_samples(), last_loss_);
    return true;
  }

  // There is no further step.
  void end_by_source() {
    const SourceEnd end = walk_.end();
    stop(reason_of(end));
    ended_by_source_ = true;
    result_.out_of_devices = end.cause == SourceEnd::Cause::out_of_devices;
    if (end.time) result_.time = end.time;
  }

  [[nodiscard]] std::string reason_of(const SourceEnd& end) const {
    switch (end.cause) {
      case SourceEnd::Cause::out_of_devices:
        return std::string(kOutOfDevices);
      case SourceEnd::Cause::budget:
        return reached(options_.budget, {.time = end.time});
      default:
        return fmt::format("the {} ended after {} steps",
                           source_->trace() != nullptr ? "trace" : "source of the steps",
                           result_.steps);
    }
  }

  // That of so many samples of the epoch; not a number where it does not count.
  void add_loss(std::int64_t samples, double loss) {
    if (std::isnan(loss)) return;
    epoch_->loss_samples += samples;
    epoch_->loss_sum += loss * minibatches_of(samples);
  }
  [[nodiscard]] double minibatches_of(std::int64_t samples) const {
    return static_cast<double>(samples) / static_cast<double>(options_.minibatch_size);
  }

  // That of the walk, and what is known of it.
  [[nodiscard]] Epoch new_epoch() {
    const std::int64_t samples = walk_.planner().samples_per_epoch();
    Epoch epoch{
        .start = {.index = walk_.epoch(), .first_step = walk_.first_step(), .samples = samples}};
    if (!trace_) return epoch;
    trace_->go_to(walk_.epoch(), walk_.first_step(), walk_.samples_before());
    if (const std::optional<EpochPlan> plan = trace_->next()) {
      epoch.start = start_of(*plan, trace_->options());
      epoch.whole_steps = epoch.start.steps;
      if (!plan->complete) {
        *epoch.whole_steps += (samples - epoch.start.samples) / plan->steps.back().batch_size;
      }
    }
    return epoch;
  }

  // What is left of its steps, until somebody wants to stop or pause.
  void train_epoch() {
    FirstException of_observers;
    listeners_.tell(of_observers,
                    [&](Observer& observer) { observer.on_epoch_begin(*this, epoch_->start); });
    of_observers.rethrow();
    Stopwatch stopwatch;
    while (!stopped() && !pausing_ && walk_.next() != nullptr) {
      const NextStep& next = *walk_.next();
      try {
        order_.prepare(next.epoch, next.plan);
        last_step_ = run_step(next);
      } catch (const HostLost&) {
        result_.stopped.clear();
        if (!regroup_due()) throw;
        // The step is as if it had not been: the hosts that are left redo it.
        pausing_ = true;
        break;
      } catch (...) {
        // Nor does what an observer wished in a step that is none.
        result_.stopped.clear();
        throw;
      }
      const StepRecord& step = last_step_;
      if (step.applied || step.skipped) {
        if (std::string reason = walk_.reached_with(step.gain); !reason.empty()) stop(reason);
      }
      listeners_.tell(of_observers, [&](Observer& observer) { observer.on_step(*this, step); });
      if (!step.applied && !step.skipped) {
        result_.stopped.clear();
        of_observers.rethrow();
        throw_diverged(step);
      }
      count(step);
      if (options_.hosts != nullptr) options_.hosts->tell_steps(result_.steps);
      const double seconds = stopwatch.lap();
      epoch_->train_seconds += seconds;
      result_.train_seconds += seconds;
      whole_ = true;
      of_observers.keep_of([this] { result_.part = walk_.part(epoch_->whole_steps); });
      of_observers.rethrow();
      let_observers_look();
      if (regroup_due()) pausing_ = true;
    }
  }

  [[nodiscard]] bool regroup_due() const {
    return options_.hosts != nullptr && options_.hosts->regroup_due();
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
    if (step.skipped) ++result_.skipped_steps;
    const bool counts = !step.skipped || std::isfinite(step.loss);
    last_loss_ = counts ? step.loss : std::numeric_limits<double>::quiet_NaN();
    const std::int64_t before = walk_.epoch_samples();
    walk_.take(step.gain, noise_scale());
    add_loss(walk_.epoch_samples() - before, last_loss_);
    tell_result();
    result_.time = walk_.time();
  }

  // How far the walk has come.
  void tell_result() {
    result_.epochs = walk_.epoch().value();
    result_.steps = walk_.step().value();
    result_.samples = walk_.samples();
    result_.iterations = walk_.iterations();
  }

  [[nodiscard]] std::optional<double> noise_scale() const {
    return options_.log_noise ? noise_scale_.value() : std::nullopt;
  }

  void end_epoch() {
    const Stopwatch stopwatch;
    if (!stopped() && walk_.has_ended()) end_by_source();
    EpochRecord record{.epoch = walk_.epoch(),
                       .steps = walk_.epoch_steps(),
                       .samples = walk_.epoch_samples(),
                       .train_loss = epoch_->loss_sum / minibatches_of(epoch_->loss_samples),
                       .test = {},
                       .train_seconds = epoch_->train_seconds};
    if (objective_->has_test()) {
      record.test = objective_->test(
          workers_, evaluation_options(options_),
          fmt::format(" of the test data after epoch {}", record.epoch.value() + 1));
    }
    for (const OwnMetric& metric : options_.metrics) {
      const std::optional<double> value = metric.value(*this, record);
      if (value) record.metrics.push_back({.name = metric.name, .value = *value});
    }
    record.time = result_.time;
    record.test_seconds = stopwatch.seconds();
    const std::optional<EpochPart> part = walk_.part(epoch_->whole_steps);
    record.whole = !part;
    if (const auto metric = value_of(options_.watch, record)) tell_schedule(*metric);

    // From here on the epoch has ended, whatever observers say to it.
    result_.part = part;
    epoch_.reset();
    walk_.end_epoch(record.whole);
    tell_result();
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
    stage_ = Stage::between_steps;
    listeners_.tell(of_observers, [&](Observer& observer) { observer.between_steps(*this); });
    stage_ = Stage::training;
    of_observers.rethrow();
  }

  void note_test(const Evaluation& test) {
    result_.final_test = test;
    if (test.accuracy) {
      result_.best_test_accuracy = std::max(result_.best_test_accuracy.value_or(0), *test.accuracy);
    }
  }

  // What the schedule counts.
  [[nodiscard]] TrainingProgress progress() const {
    return {.epochs = walk_.epoch().value(),
            .epoch_samples = walk_.epoch_samples(),
            .dataset_size = objective_->samples(),
            .steps = walk_.step().value(),
            .samples = walk_.samples(),
            .iterations = walk_.iterations()};
  }

  StepRecord run_step(const NextStep& next) {
    const StepPlan& plan = next.plan;
    const double factor = schedule_->factor(position_of(progress(), options_.schedule_unit));
    require_applicable(factor, options_.own_schedule ? "of your own" : options_.schedule,
                       place_of(next.epoch, plan.index));
    const double rate = own_rate_.value_or(options_.learning_rate);
    StepSettings settings{.epoch = next.epoch, .base_learning_rate = rate * factor};
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
    const StepOutcome outcome = engine_->run(plan, order_, settings);
    StepRecord record{.epoch = next.epoch,
                      .plan = plan,
                      .assignment = options_.assignment,
                      .scale = static_cast<double>(plan.batch_size) /
                               static_cast<double>(options_.reference_batch_size),
                      .learning_rate = outcome.learning_rate,
                      .gain = outcome.gain,
                      .iterations = walk_.iterations() + (outcome.applied ? outcome.gain : 0),
                      .gradient_norm = outcome.gradient_norm,
                      .loss = outcome.loss,
                      .applied = outcome.applied,
                      .loss_scale = outcome.loss_scale,
                      .skipped = outcome.skipped,
                      .time = next.time,
                      .decision_inputs = next.decision_inputs,
                      .minibatches = {outcome.minibatches.begin(), outcome.minibatches.end()},
                      .seconds = outcome.seconds};
    record.plan.cores = outcome.cores;
    if (options_.log_noise && outcome.applied) measure_noise(outcome, record);
    return record;
  }

  void measure_noise(const StepOutcome& outcome, StepRecord& record) {
    // Gradients of fewer samples have more noise.
    const bool alike = record.plan.batch_size % options_.minibatch_size == 0;
    const std::int64_t minibatches = alike ? record.plan.minibatches : 1;
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

  std::unique_ptr<StepSource> source_;
  TrainOptions options_;
  std::unique_ptr<Objective> objective_;
  Walk walk_;
  // Of the source's trace, where it follows one.
  std::optional<Planner> trace_;
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
  TrainResult result_;
  // That an observer has set.
  std::optional<double> own_rate_;
  // The mean of the last step, which an epoch that it goes on in begins with; not a number where
  // the step does not count.
  double last_loss_ = 0;
  SampleOrder order_{objective_->samples(), options_.minibatch_size, options_.seed,
                     options_.sampler};
  std::optional<Epoch> epoch_;
  bool tried_out_ = false;
  bool pausing_ = false;
  Stage stage_ = Stage::idle;
  // Whether TrainResult::stopped is the source's.
  bool ended_by_source_ = false;
  // What has thrown, so that only the state is of use.
  std::string thrown_;
  // Why there is no state, where there is none.
  std::string no_state_;
  // Not in the middle of an update, nor of loading: what there is to remember fits together.
  bool whole_ = true;
  StepRecord last_step_;
};

State Trainer::Implementation::state() const {
  if (stage_ == Stage::training) {
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
  // Where the source goes on when the state is loaded, it does so from the last step.
  walk_.save(state, epoch_.has_value());
  if (ended_by_source_) state.put(kEndedBySource, std::int64_t{1});
  if (result_.part && !epoch_) put_part(state, *result_.part);
  bind_data(state, *objective_);
  if (own_rate_) state.put(kOwnRate, *own_rate_);
  if (epoch_) {
    state.put("epoch.loss_samples", epoch_->loss_samples);
    state.put("epoch.loss_sum", epoch_->loss_sum);
    state.put("epoch.train_seconds", epoch_->train_seconds);
  }
  if (walk_.planner().carries()) state.put("carried.loss", last_loss_);
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
  require_same_data(state, *objective_);
  const bool in_epoch = walk_.load(state, noise_scale());
  tell_result();
  result_.time = walk_.time();
  if (state.has(kOwnRate)) set_learning_rate(state.value<double>(kOwnRate));
  if (walk_.planner().carries()) last_loss_ = state.value<double>("carried.loss");
  // What its source has ended goes on where the source does.
  if (state.has(kEndedBySource)) {
    result_.stopped.clear();
    if (walk_.has_ended()) end_by_source();
  }

  const std::int64_t begun = result_.epochs + (in_epoch ? 1 : 0);
  if (options_.epochs < begun) {
    throw Error(
        fmt::format("{} epochs are asked for, but epoch {} has begun; accepted: at least {}",
                    options_.epochs, begun, begun));
  }
  const std::optional<EpochPart> part = part_of(state);
  if (result_.stopped.empty() && trace_) {
    require_same_epochs(*trace_, walk_, part.has_value());
  } else if (result_.stopped.empty() && part) {
    throw Error(
        fmt::format("{}: epoch {} of the run ended before this step, and now it goes on; accepted: "
                    "a source that ends there, too",
                    source_->where(walk_.step()), result_.epochs + 1));
  }
  result_.part = part;
  if (in_epoch) {
    epoch_ = new_epoch();
    epoch_->train_seconds = state.value<double>("epoch.train_seconds");
    epoch_->loss_samples = state.count("epoch.loss_samples");
    epoch_->loss_sum = state.value<double>("epoch.loss_sum");
    result_.part = walk_.part(epoch_->whole_steps);
  }
  listeners_.load(*this, state);
}

Trainer::Trainer(std::unique_ptr<Objective> objective, std::unique_ptr<StepSource> source,
                 TrainOptions options)
    : implementation_(std::make_unique<Implementation>(std::move(objective), std::move(source),
                                                       std::move(options))) {}
Trainer::Trainer(std::unique_ptr<Objective> objective, Trace trace, TrainOptions options)
    : Trainer(std::move(objective), std::make_unique<TraceSource>(std::move(trace)),
              std::move(options)) {}
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
