#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
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

constexpr std::string_view kGain = "gain_of_last_step";
constexpr std::string_view kOwnRate = "own_learning_rate";
constexpr std::string_view kBatch = "batch_of_last_step";

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
        planner_(plan_options(*objective_, options_)),
        trace_(checked_trace(*source_, *objective_, options_)),
        rule_(options_.rules.make(options_.rule)),
        schedule_(schedule_of(options_)),
        workers_(options_.dealing == Dealing::in_turns ? 1 : options_.threads),
        engine_(make_step_engine(
            {*objective_, workers_, *rule_}, options_,
            {.least = min_minibatches(), .most = max_minibatches(), .host_cores = host_cores()})),
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
    EpochStart start;
    // That a whole one would have, where that is known.
    std::optional<std::int64_t> whole_steps{};
    // That a step has taken which began before it.
    std::int64_t samples_before = 0;
    EpochRecord record{};
    // Of each step's mean loss times its minibatches in this epoch, and their samples.
    double loss_sum = 0;
    std::int64_t loss_samples = 0;
  };

  // What the last step has taken of epochs that have not begun yet.
  struct Carried {
    std::int64_t samples = 0;
    // Its mean; not a number where it is none of a step that counts.
    double loss = 0;
  };

  // What comes after the steps that have been taken.
  struct Ahead {
    // Empty where nothing does.
    std::optional<TraceStep> asked;
    // Empty where the epoch has no room for it.
    std::optional<StepPlan> plan;
  };

  void load_all(const State& state);

  // Finds what cannot work before anything is trained.
  void try_out() {
    if (tried_out_) return;
    tried_out_ = true;
    objective_->try_out(options_.minibatch_size);
    // What the last minibatch has, where it is not whole.
    const std::int64_t rest =
        planner_.samples_left(place_).value_or(options_.minibatch_size) % options_.minibatch_size;
    if (rest > 0) objective_->try_out(rest);
  }

  [[nodiscard]] bool stopped() const { return !result_.stopped.empty(); }

  // Minibatches of the largest step that there can be.
  [[nodiscard]] std::int64_t max_minibatches() const {
    const std::int64_t of_source =
        std::max<std::int64_t>(1, source_->max_batch() / options_.minibatch_size);
    return planner_.carries() ? of_source : std::min(of_source, planner_.minibatches_per_epoch());
  }

  // Of the smallest step that is known to come.
  [[nodiscard]] std::int64_t min_minibatches() const {
    if (source_->trace() == nullptr) return max_minibatches();
    const std::vector<TraceStep>& steps = source_->trace()->steps();
    const auto smaller = [](const TraceStep& a, const TraceStep& b) {
      return a.batch_size < b.batch_size;
    };
    return std::min_element(steps.begin(), steps.end(), smaller)->batch_size /
           options_.minibatch_size;
  }

  [[nodiscard]] std::set<std::vector<std::int64_t>> host_cores() const {
    std::set<std::vector<std::int64_t>> ways;
    if (source_->trace() == nullptr) return ways;
    for (const TraceStep& step : source_->trace()->steps()) {
      if (!step.host_cores.empty()) ways.insert(step.host_cores);
    }
    return ways;
  }

  [[nodiscard]] SourceProgress progress_of_source() const {
    return {.step = place_.step,
            .epoch = place_.epoch,
            .samples = result_.samples,
            .iterations = result_.iterations,
            .gain = last_gain_,
            .time = time_,
            .budget = options_.budget,
            .samples_left = planner_.samples_left(place_),
            .noise_scale = options_.log_noise ? noise_scale_.value() : std::nullopt};
  }

  // Asks the source.
  [[nodiscard]] const Ahead& ahead() {
    if (ahead_) return *ahead_;
    Ahead ahead{.asked = source_->next(progress_of_source()), .plan = {}};
    if (ahead.asked) {
      std::string objection = planner_.objection(*ahead.asked);
      if (objection.empty() && ahead.asked->batch_size > source_->max_batch()) {
        objection = fmt::format(
            "batch size {} is above the largest that the source has announced; "
            "accepted: at most {}",
            ahead.asked->batch_size, source_->max_batch());
      }
      if (!objection.empty()) {
        throw Error(fmt::format("{}: {}", source_->where(place_.step), objection));
      }
      ahead.plan = planner_.plan(place_, *ahead.asked);
    }
    ahead_ = ahead;
    return *ahead_;
  }

  // Whether there is one.
  bool begin_epoch() {
    if (stopped() || result_.epochs >= options_.epochs) return false;
    // One that has all its samples already needs no further step.
    if (carried_.samples < planner_.samples_per_epoch() && !ahead().asked) {
      end_by_source();
      return false;
    }
    const std::int64_t taken = std::min(carried_.samples, planner_.samples_per_epoch());
    epoch_ = new_epoch(EpochIndex{result_.epochs}, place_.step, taken);
    take_samples(taken, carried_.loss);
    carried_.samples -= taken;
    return true;
  }

  // There is no further step.
  void end_by_source() {
    const SourceEnd end = source_->end(progress_of_source());
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

  // Of a step with that loss, into the epoch.
  void take_samples(std::int64_t samples, double loss) {
    epoch_->record.samples += samples;
    progress_.epoch_samples = epoch_->record.samples;
    if (std::isnan(loss)) return;
    epoch_->loss_samples += samples;
    epoch_->loss_sum += loss * minibatches_of(samples);
  }
  [[nodiscard]] double minibatches_of(std::int64_t samples) const {
    return static_cast<double>(samples) / static_cast<double>(options_.minibatch_size);
  }

  // Of which nothing has been trained but what a step took that began before it, and what is known
  // of it.
  [[nodiscard]] Epoch new_epoch(EpochIndex index, StepIndex first_step,
                                std::int64_t samples_before) {
    Epoch epoch{.start = {.index = index,
                          .first_step = first_step,
                          .samples = planner_.samples_per_epoch()},
                .samples_before = samples_before};
    epoch.record.epoch = index;
    if (!trace_) return epoch;
    trace_->go_to(index, first_step, samples_before);
    if (const std::optional<EpochPlan> plan = trace_->next()) {
      epoch.start = start_of(*plan, planner_.options());
      epoch.whole_steps = epoch.start.steps;
      if (!plan->complete) {
        const std::int64_t left = planner_.samples_per_epoch() - epoch.start.samples;
        *epoch.whole_steps += left / plan->steps.back().batch_size;
      }
    }
    return epoch;
  }

  // Whether the epoch has room for no further step.
  [[nodiscard]] bool is_full() {
    if (epoch_->record.samples >= planner_.samples_per_epoch()) return true;
    return ahead().asked && !ahead().plan;
  }

  // The part of the epoch that has been trained, while that is not the whole of it.
  [[nodiscard]] std::optional<EpochPart> part_of_epoch() {
    if (is_full()) return std::nullopt;
    const EpochRecord& record = epoch_->record;
    const std::int64_t left = planner_.samples_per_epoch() - record.samples;
    // As if the last step were held.
    const std::int64_t more = last_batch_ > 0 ? left / last_batch_ : 0;
    return EpochPart{.steps = record.steps,
                     .samples = record.samples,
                     .of_steps = epoch_->whole_steps.value_or(record.steps + more)};
  }

  // What is left of its steps, until somebody wants to stop or pause.
  void train_epoch() {
    FirstException of_observers;
    listeners_.tell(of_observers,
                    [&](Observer& observer) { observer.on_epoch_begin(*this, epoch_->start); });
    of_observers.rethrow();
    EpochRecord& record = epoch_->record;
    Stopwatch stopwatch;
    while (!stopped() && !pausing_ && !is_full() && ahead().plan) {
      const StepPlan plan = *ahead().plan;
      try {
        order_.prepare(place_.epoch, plan);
        last_step_ = run_step(place_.epoch, plan);
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
      if (std::string reason = reached_with(step); !reason.empty()) stop(std::move(reason));
      listeners_.tell(of_observers, [&](Observer& observer) { observer.on_step(*this, step); });
      if (!step.applied && !step.skipped) {
        result_.stopped.clear();
        of_observers.rethrow();
        throw_diverged(step);
      }
      count(step);
      if (options_.hosts != nullptr) options_.hosts->tell_steps(result_.steps);
      const double seconds = stopwatch.lap();
      record.train_seconds += seconds;
      result_.train_seconds += seconds;
      whole_ = true;
      of_observers.keep_of([this] { result_.part = part_of_epoch(); });
      of_observers.rethrow();
      let_observers_look();
      if (regroup_due()) pausing_ = true;
    }
  }

  [[nodiscard]] bool regroup_due() const {
    return options_.hosts != nullptr && options_.hosts->regroup_due();
  }

  // What of its budget training has reached with a step; empty where there is some left.
  [[nodiscard]] std::string reached_with(const StepRecord& step) const {
    if (!step.applied && !step.skipped) return {};
    return reached(options_.budget, {.iterations = step.iterations,
                                     .samples = result_.samples + step.plan.batch_size,
                                     .time = step.time});
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
    if (step.skipped) ++result_.skipped_steps;
    const bool counts = !step.skipped || std::isfinite(step.loss);
    const double loss = counts ? step.loss : std::numeric_limits<double>::quiet_NaN();
    const std::int64_t taken =
        std::min(step.plan.batch_size, planner_.samples_per_epoch() - record.samples);
    take_samples(taken, loss);
    carried_ = {.samples = step.plan.batch_size - taken, .loss = loss};
    result_.samples += step.plan.batch_size;
    ++result_.steps;
    result_.iterations = step.iterations;
    time_ = step.time;
    result_.time = time_;
    ++progress_.steps;
    progress_.samples += step.plan.batch_size;
    progress_.iterations += step.gain;
    last_gain_ = step.gain;
    last_batch_ = step.plan.batch_size;
    const TraceStep trained = shortened(*ahead_->asked, progress_of_source());
    place_ = planner_.after(place_, step.plan);
    ahead_.reset();
    source_->taken(trained, progress_of_source());
  }

  void end_epoch() {
    const Stopwatch stopwatch;
    if (!stopped() && !is_full() && !ahead().asked) end_by_source();
    EpochRecord record = epoch_->record;
    record.train_loss = epoch_->loss_sum / minibatches_of(epoch_->loss_samples);
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
    const std::optional<EpochPart> part = part_of_epoch();
    record.whole = !part;
    if (const auto metric = value_of(options_.watch, record)) tell_schedule(*metric);

    // From here on the epoch has ended, whatever observers say to it.
    result_.part = part;
    epoch_.reset();
    if (record.whole) {
      ++result_.epochs;
      ++progress_.epochs;
    }
    progress_.epoch_samples = 0;
    if (!planner_.carries()) {
      place_ = {.step = place_.step, .epoch = EpochIndex{result_.epochs}};
      ahead_.reset();
    }
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

  StepRecord run_step(EpochIndex epoch, const StepPlan& plan) {
    const double factor = schedule_->factor(position_of(progress_, options_.schedule_unit));
    require_applicable(factor, options_.own_schedule ? "of your own" : options_.schedule,
                       place_of(epoch, plan.index));
    const double rate = own_rate_.value_or(options_.learning_rate);
    StepSettings settings{.epoch = epoch, .base_learning_rate = rate * factor};
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
                      .time = source_->time_after(progress_of_source()),
                      .decision_inputs = source_->decision_inputs(progress_of_source()),
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
  StepPlanner planner_;
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
  TrainingProgress progress_{.dataset_size = objective_->samples()};
  TrainResult result_;
  // Where the next step begins.
  StepPlace place_;
  // With the last step, where the source has a clock.
  std::optional<ClockTime> time_;
  std::optional<double> last_gain_;
  // That an observer has set.
  std::optional<double> own_rate_;
  std::int64_t last_batch_ = 0;
  Carried carried_;
  SampleOrder order_{objective_->samples(), options_.minibatch_size, options_.seed,
                     options_.sampler};
  // What the source has said to the place; empty while nobody has asked.
  std::optional<Ahead> ahead_;
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

  TrainResult taken = result_;
  // Where the source goes on when the state is loaded, it does so from the last step.
  taken.time = time_;
  put_result(state, taken);
  if (ended_by_source_) state.put(kEndedBySource, std::int64_t{1});
  if (result_.part && !epoch_) put_part(state, *result_.part);
  bind_state(state, *source_, result_, *objective_);
  state.put(kBatch, last_batch_);
  // All of a trace is known from the place.
  if (!trace_ && last_gain_) state.put(kGain, *last_gain_);
  if (own_rate_) state.put(kOwnRate, *own_rate_);
  const StepIndex next = epoch_ ? epoch_->start.first_step : place_.step;
  state.put("epoch.first_step", next.value());
  if (epoch_) {
    state.put("epoch.steps", epoch_->record.steps);
    state.put("epoch.samples", epoch_->record.samples);
    state.put("epoch.samples_before", epoch_->samples_before);
    state.put("epoch.loss_samples", epoch_->loss_samples);
    state.put("epoch.loss_sum", epoch_->loss_sum);
    state.put("epoch.train_seconds", epoch_->record.train_seconds);
  }
  if (planner_.carries()) {
    state.put("carried.samples", carried_.samples);
    state.put("carried.loss", carried_.loss);
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
  const std::int64_t minibatch = options_.minibatch_size;
  go_on_from(state, *source_, result_, *objective_,
             (planner_.samples_per_epoch() + minibatch - 1) / minibatch);
  if (!trace_ && result_.steps > 0) last_gain_ = state.value<double>(kGain);
  if (state.has(kOwnRate)) set_learning_rate(state.value<double>(kOwnRate));
  const StepIndex epoch_begin{state.count("epoch.first_step")};
  const bool in_epoch = state.has("epoch.steps");
  const std::int64_t epoch_samples = in_epoch ? state.count("epoch.samples") : 0;
  progress_ = {.epochs = result_.epochs,
               .epoch_samples = epoch_samples,
               .dataset_size = objective_->samples(),
               .steps = result_.steps,
               .samples = result_.samples,
               .iterations = result_.iterations};
  last_batch_ = state.count(kBatch);
  time_ = result_.time;
  place_ = {.step = StepIndex{result_.steps},
            .epoch = EpochIndex{result_.epochs},
            .samples = epoch_samples};
  if (planner_.carries()) {
    carried_ = {.samples = state.count("carried.samples"),
                .loss = state.value<double>("carried.loss")};
    const std::int64_t samples = planner_.samples_per_epoch();
    // One that goes on in the next epoch has taken all of this one.
    const bool fits = epoch_samples <= samples && carried_.samples <= kMaxBatchSize &&
                      (carried_.samples == 0 || epoch_samples % samples == 0);
    if (!fits) {
      throw Error(fmt::format("the state is damaged: {} samples of an epoch and {} of the next",
                              epoch_samples, carried_.samples));
    }
    const std::int64_t taken = epoch_samples + carried_.samples;
    place_.epoch = EpochIndex{result_.epochs + taken / samples};
    place_.samples = taken % samples;
  }
  // What its source has ended goes on where the source does.
  if (state.has(kEndedBySource)) {
    result_.stopped.clear();
    if (!ahead().asked) end_by_source();
  }

  if (options_.epochs < result_.epochs + (in_epoch ? 1 : 0)) {
    throw Error(fmt::format(
        "{} epochs are asked for, but epoch {} has begun; accepted: at least {}", options_.epochs,
        result_.epochs + (in_epoch ? 1 : 0), result_.epochs + (in_epoch ? 1 : 0)));
  }
  if (trace_) {
    require_same_epochs(state, *trace_, result_, epoch_begin);
  } else if (result_.stopped.empty() && part_of(state)) {
    throw Error(
        fmt::format("{}: epoch {} of the run ended before this step, and now it goes on; accepted: "
                    "a source that ends there, too",
                    source_->where(place_.step), result_.epochs + 1));
  }
  if (in_epoch) {
    epoch_ =
        new_epoch(EpochIndex{result_.epochs}, epoch_begin, state.count("epoch.samples_before"));
    const std::int64_t done = state.count("epoch.steps");
    if (epoch_->start.steps && done > *epoch_->start.steps) {
      throw Error("the state is damaged: its epoch has more steps than the trace");
    }
    if (epoch_begin.value() + done != result_.steps) {
      throw Error(fmt::format("the state is damaged: {} steps from step {} on are not {} steps",
                              done, epoch_begin.value() + 1, result_.steps));
    }
    epoch_->record = {.epoch = EpochIndex{result_.epochs},
                      .steps = done,
                      .samples = epoch_samples,
                      .test = {},
                      .train_seconds = state.value<double>("epoch.train_seconds")};
    epoch_->loss_samples = state.count("epoch.loss_samples");
    epoch_->loss_sum = state.value<double>("epoch.loss_sum");
    result_.part = part_of_epoch();
  } else {
    result_.part = part_of(state);
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
