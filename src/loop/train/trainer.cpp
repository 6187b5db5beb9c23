// Trainer only forwards; Trainer::Implementation is the loop: the epochs of a Walk, each with its
// steps (StepTaker), its test and its observers. It keeps the promise that there is a state after
// almost every exception: a failed step is undone, all observers are called even if one throws, and
// the exception is rethrown only once the step or the epoch has been counted. The objective has
// either the weights that steps change or weights that are shown, such as Lookahead's slow ones;
// show() exchanges them, and visit_state() first brings the former back. Another thread may read
// the state only in the stretches of QuietStretches, while minibatches or tests are computed.
// Saving, loading and forking are one function, visit_state(), so that they cannot disagree;
// place_after_load() then places the loop where the state ends.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/trainer.hpp>

#include "base/core/seconds.hpp"
#include "base/core/throw_error.hpp"
#include "bound_values.hpp"
#include "checked_options.hpp"
#include "checked_parts.hpp"
#include "listeners.hpp"
#include "loop/train/step/step_part.hpp"
#include "loop/train/step/step_taker.hpp"
#include "record_schemas.hpp"
#include "running_epoch.hpp"
#include "trainer_stage.hpp"

namespace rubato {

namespace {

// The message for a `step` that was neither applied nor skipped.
Diverged divergence_of(const StepRecord& step, const Objective& objective, std::string_view rule) {
  if (step.loss_scale) {
    return {fmt::format("the loss scale fell below {}: step after step overflowed",
                        objective.loss_scale()->smallest),
            step, rule};
  }
  return {std::isfinite(step.loss) ? "the gradient became infinite or NaN"
                                   : "the loss became " + in_words(step.loss),
          step, rule};
}

// Weights that have diverged would also show in the training loss.
Diverged test_divergence_of(const EpochRecord& epoch, const StepRecord& step,
                            std::string_view rule) {
  const std::string what = "the test loss became " + in_words(epoch.test->loss);
  if (!std::isfinite(epoch.train_loss)) return {what, step, rule};
  return {
      what, step, rule,
      fmt::format("the training loss is {:.6g}: look for extreme values in the test data, or {}",
                  epoch.train_loss, Diverged::kSmallerSteps)};
}

// The reason why training ends with its source, for TrainResult::stopped.
std::string reason_of(const SourceEnd& end, const StepSource& source, const Budget& budget,
                      std::int64_t steps) {
  switch (end.cause) {
    case SourceEnd::Cause::out_of_devices:
      return std::string(kOutOfDevices);
    case SourceEnd::Cause::budget:
      return reached(budget, {.time = end.time});
    default:
      return fmt::format("the {} ended after {} steps",
                         source.trace() != nullptr ? "trace" : "source of the steps", steps);
  }
}

}  // namespace

Diverged::Diverged(std::string_view what, const StepRecord& step, std::string_view rule,
                   std::string_view advice)
    : Error(fmt::format("{} at {} (batch {}, rule {}, lr {:.6g}){}", what,
                        place_of(step.epoch, step.plan.index), step.plan.batch_size, rule,
                        step.learning_rate, step.applied ? "" : "; the step was not applied")),
      step_(step),
      advice_(advice) {}

class Trainer::Implementation final : public Training {
 public:
  Implementation(std::unique_ptr<Objective> objective, std::unique_ptr<StepSource> source,
                 TrainOptions options)
      : source_(checked_source(std::move(source))),
        options_(options_for(*source_, std::move(options))),
        objective_(checked_objective(std::move(objective))),
        walk_(*source_, plan_options(*objective_, options_), options_.budget),
        trace_(checked_trace(*source_, *objective_, options_)),
        workers_(options_.dealing == Dealing::in_turns ? 1 : options_.threads),
        steps_(*objective_, workers_, options_, steps_to_come(*source_, walk_)),
        bound_(options_, *objective_) {
    if (options_.digest_every > 0) digests_.emplace();
  }

  TrainResult fit() {
    stage_.require_idle("fit()");
    stage_.require_usable("fit()");
    require_trainable(*objective_, options_, steps_.schedule());
    pausing_ = false;
    stage_.begin_fit();
    show({});
    quiet_.begin_fit();
    try {
      train();
    } catch (const std::exception& error) {
      end_by(error.what());
      throw;
    } catch (...) {
      end_by("an exception that is not a std::exception");
      throw;
    }
    quiet_.end_fit();
    show(kModelWeights);
    stage_.end_fit();
    return result_;
  }

  const TrainOptions& options() const override { return options_; }
  const TrainResult& result() const override { return result_; }
  const std::vector<NamedArray>& parameters() const override { return objective_->parameters(); }
  const std::vector<NamedArray>& buffers() const override { return objective_->buffers(); }
  Objective& objective() const override { return *objective_; }
  Workers& workers() const override { return workers_; }
  std::int64_t gradient_buffers() const { return steps_.gradient_buffers(); }
  std::int64_t minibatches_at_once() const { return steps_.minibatches_at_once(); }
  std::string_view part_under_way() const { return steps_.part(); }
  void add_observer(std::shared_ptr<Observer> observer, std::optional<std::string> name) {
    stage_.require_idle("add_observer()");
    listeners_.add(*this, std::move(observer), std::move(name));
  }
  void stop(std::string reason) override {
    if (stopped()) return;
    result_.stopped = reason.empty() ? "stopped" : std::move(reason);
  }
  void pause() override { pausing_ = true; }
  void set_learning_rate(double rate) override { steps_.set_learning_rate(rate); }
  void with_weights(std::string_view name, const std::function<void()>& use) override {
    const std::vector<OtherWeightsInfo> all = other_weights(&options_);
    const auto found = std::ranges::find(all, name, &OtherWeightsInfo::name);
    if (found == all.end()) throw_error("this training has no weights called '{}'", name);
    const Showing weights(*this, found->name);
    use();
  }
  bool has_state() const { return stage_.has_state(); }
  State state() const override {
    stage_.require_state();
    return state_of(*this);
  }
  bool state_in_step(const std::function<void(const State&, std::int64_t)>& take) {
    return quiet_.read([&] { take(unshown_ ? *unshown_ : state_of(*this), result_.steps); });
  }
  void load(const State& state, bool forks);
  // Called by state() and load().
  void visit_state(StateVisitor& state);

 private:
  // Called when fit() throws.
  void end_by(std::string_view what) {
    quiet_.end_fit();
    show(kModelWeights);
    stage_.broken_by("fit()", fmt::format("the update at {} was interrupted by '{}'",
                                          place_of(walk_.epoch(), walk_.step()), what));
  }

  void train() {
    try_out();
    while (!pausing_ && (epoch_ || begin_epoch())) {
      train_epoch();
      if (!pausing_) end_epoch();
    }
  }

  // Gives the objective those weights, or the ones that steps change if `shown` is empty. It has
  // the model's while an epoch is evaluated and reported, and outside of fit().
  void show(std::optional<std::string_view> shown) {
    if (shown_ == shown) return;
    if (shown_) steps_.exchange_shown(*shown_);
    if (shown) steps_.exchange_shown(*shown);
    shown_ = shown;
  }

  // During its lifetime, the objective has those weights.
  class Showing {
   public:
    Showing(Implementation& of, std::optional<std::string_view> shown)
        : of_(of), before_(of.shown_) {
      of.show(shown);
    }
    ~Showing() { of_.show(before_); }
    Showing(const Showing&) = delete;
    Showing& operator=(const Showing&) = delete;

   private:
    Implementation& of_;
    std::optional<std::string_view> before_;
  };

  void visit_digests(StateVisitor& state);
  void place_after_load(bool in_epoch, const std::optional<EpochPart>& part, bool forks);

  // Finds mistakes before anything is trained.
  void try_out() {
    if (tried_out_) return;
    tried_out_ = true;
    objective_->try_out(options_.minibatch_size);
    // The last minibatch has this size if it is not full.
    const std::int64_t rest = walk_.progress().samples_left.value_or(0) % options_.minibatch_size;
    if (rest > 0) objective_->try_out(rest);
  }

  [[nodiscard]] bool stopped() const { return !result_.stopped.empty(); }

  // Returns whether there is another epoch.
  bool begin_epoch() {
    if (walk_.epoch().value() >= options_.epochs) return false;
    // The step that reached the budget may have taken all samples of several epochs.
    if (stopped() && !(walk_.budget_is_reached() && walk_.has_all_samples())) return false;
    // An epoch that has all its samples already needs no further step.
    if (walk_.has_ended()) {
      end_by_source();
      return false;
    }
    epoch_.emplace(walk_, trace_);
    epoch_->add_loss(walk_.epoch_samples(), last_loss_, last_weight_);
    return true;
  }

  // Ends training because the source has no further step.
  void end_by_source() {
    const SourceEnd end = walk_.end();
    stop(reason_of(end, *source_, options_.budget, result_.steps));
    ended_by_source_ = true;
    result_.out_of_devices = end.cause == SourceEnd::Cause::out_of_devices;
    if (end.time) result_.time = end.time;
  }

  // Trains the remaining steps of the epoch, until an observer asks to stop or pause.
  void train_epoch() {
    FirstException of_observers;
    listeners_.notify(of_observers,
                      [&](Observer& observer) { observer.on_epoch_begin(*this, epoch_->start()); });
    of_observers.rethrow();
    Stopwatch stopwatch;
    while (!stopped() && !pausing_ && walk_.next() != nullptr) {
      const NextStep& next = *walk_.next();
      try {
        last_step_ =
            steps_.run(next, walk_, *this, listeners_, quiet_, [this] { stage_.set_whole(false); });
      } catch (const HostLost&) {
        result_.stopped.clear();
        if (!regroup_due()) throw;
        // The failed step is undone: the hosts that are left redo it.
        pausing_ = true;
        break;
      } catch (...) {
        // A failed step is undone, and so are stop requests made during it.
        result_.stopped.clear();
        throw;
      }
      const StepRecord& step = last_step_;
      if (step.applied || step.skipped) {
        if (std::string reason = walk_.reached_with(step.gain); !reason.empty()) stop(reason);
      }
      listeners_.notify(of_observers, [&](Observer& observer) { observer.on_step(*this, step); });
      if (!step.applied && !step.skipped) {
        result_.stopped.clear();
        of_observers.rethrow();
        throw divergence_of(step, *objective_, options_.rule.text());
      }
      count(step);
      if (options_.hosts != nullptr) options_.hosts->report_steps(result_.steps);
      const double seconds = stopwatch.lap();
      epoch_->add_seconds(seconds);
      result_.train_seconds += seconds;
      stage_.set_whole(true);
      of_observers.keep_of([this] { result_.part = walk_.part(epoch_->whole_steps()); });
      of_observers.rethrow();
      let_observers_look();
      if (regroup_due()) pausing_ = true;
    }
    if (stopped() || pausing_ || !walk_.has_ended()) return;
    stage_.between_steps([&] {
      listeners_.notify(of_observers, [&](Observer& observer) { observer.on_cut_short(*this); });
    });
    of_observers.rethrow();
  }

  [[nodiscard]] bool regroup_due() const {
    return options_.hosts != nullptr && options_.hosts->regroup_due();
  }

  // Records a step that has been taken.
  void count(const StepRecord& step) {
    if (step.skipped) ++result_.skipped_steps;
    const bool counts = !step.skipped || std::isfinite(step.loss);
    last_loss_ = counts ? step.loss : std::numeric_limits<double>::quiet_NaN();
    if (step.digest && digests_) {
      digests_ = chained(*digests_, *step.digest);
      result_.digest = digests_;
    }
    last_weight_ = step.weight;
    if (last_weight_) *last_weight_ /= static_cast<double>(step.plan.batch_size);
    const std::int64_t before = walk_.epoch_samples();
    walk_.take(step.gain, steps_.noise_scale());
    epoch_->add_loss(walk_.epoch_samples() - before, last_loss_, last_weight_);
    report_result();
    result_.time = walk_.time();
  }

  // Copies the progress of the walk to the result.
  void report_result() {
    result_.epochs = walk_.epoch().value();
    result_.steps = walk_.step().value();
    result_.samples = walk_.samples();
    result_.iterations = walk_.iterations();
  }

  void end_epoch() {
    const Stopwatch stopwatch;
    if (!stopped() && walk_.has_ended()) end_by_source();
    EpochRecord record{.epoch = walk_.epoch(),
                       .steps = walk_.epoch_steps(),
                       .samples = walk_.epoch_samples(),
                       .train_loss = epoch_->mean_loss(),
                       .test = {},
                       .train_seconds = epoch_->train_seconds()};
    if (objective_->has_test()) {
      if (steps_.shows_others()) unshown_ = state_of(*this);
      record.test = test(kModelWeights);
      for (const OtherWeightsInfo& weights : other_weights(&options_)) {
        record.other_tests.emplace(weights.name, test(weights.name));
      }
    }
    show(kModelWeights);
    unshown_.reset();
    steps_.enter("metric");
    for (const OwnMetric& metric : options_.metrics) {
      const std::optional<double> value = metric.value(*this, record);
      if (value) record.metrics.push_back({.name = metric.name, .value = *value});
    }
    steps_.enter({});
    record.time = result_.time;
    record.test_seconds = stopwatch.seconds();
    const std::optional<EpochPart> part = walk_.part(epoch_->whole_steps());
    record.whole = !part;
    if (const auto metric = value_of(options_.watch, record)) report_to_schedule(*metric);

    // The epoch has ended from here on, whatever observers throw.
    result_.part = part;
    epoch_.reset();
    walk_.end_epoch(record.whole);
    report_result();
    FirstException of_observers;
    if (record.test) {
      note_test(*record.test);
      result_.final_other_tests = record.other_tests;
      listeners_.notify(of_observers,
                        [&](Observer& observer) { observer.on_evaluate(*this, record); });
    }
    listeners_.notify(of_observers, [&](Observer& observer) { observer.on_epoch(*this, record); });
    show({});
    of_observers.rethrow();
    if (record.test && !std::isfinite(record.test->loss)) {
      throw test_divergence_of(record, last_step_, options_.rule.text());
    }
    let_observers_look();
  }

  // Tests those weights after the epoch.
  [[nodiscard]] Evaluation test(std::string_view weights) {
    show(weights);
    const Stopwatch stopwatch;
    const QuietStretch quiet(quiet_);
    Evaluation result = objective_->test(
        workers_, evaluation_options(options_),
        fmt::format(" of the test data after epoch {}", walk_.epoch().value() + 1));
    report_test(stopwatch.begun());
    return result;
  }

  void report_test(Span::Moment begin) const {
    if (!options_.on_span) return;
    options_.on_span({.activity = Activity::test,
                      .epoch = walk_.epoch(),
                      .step = StepIndex{walk_.step().value() - 1},
                      .begin = begin,
                      .end = std::chrono::steady_clock::now()});
  }

  // The schedule changes completely or not at all.
  void report_to_schedule(double metric) {
    LrSchedule& schedule = steps_.schedule();
    const std::vector<double> before = numbers_of(schedule);
    stage_.set_whole(false);
    steps_.enter("schedule");
    try {
      schedule.observe(metric);
    } catch (...) {
      load_numbers(schedule, before, "the schedule");
      stage_.set_whole(true);
      throw;
    }
    steps_.enter({});
    stage_.set_whole(true);
  }

  // All observers have been notified of the step or the epoch.
  void let_observers_look() {
    FirstException of_observers;
    stage_.between_steps([&] {
      listeners_.notify(of_observers, [&](Observer& observer) { observer.between_steps(*this); });
    });
    of_observers.rethrow();
  }

  void note_test(const Evaluation& test) {
    result_.final_test = test;
    if (test.accuracy) {
      result_.best_test_accuracy = std::max(result_.best_test_accuracy.value_or(0), *test.accuracy);
    }
  }

  std::unique_ptr<StepSource> source_;
  TrainOptions options_;
  std::unique_ptr<Objective> objective_;
  Walk walk_;
  // The plan of the source's trace, if it has one.
  std::optional<Planner> trace_;
  // Mutable, because everyone who may read a training may use its threads.
  mutable Workers workers_;
  StepTaker steps_;
  // The configuration to which states are bound.
  BoundValues bound_;
  Listeners listeners_;
  TrainResult result_;
  // The digests of all steps so far, chained; empty if none are computed or if a state of an older
  // version does not know them.
  std::optional<Digest> digests_;
  // The mean loss of the last step, part of which may belong to the next epoch; NaN if the step
  // does not count.
  double last_loss_ = 0;
  // The mean weight of a sample in the last step, if the loss has weights.
  std::optional<double> last_weight_{};
  std::optional<RunningEpoch> epoch_;
  std::optional<std::string_view> shown_{};
  // The state during a test of weights other than those that steps change, which are not in their
  // place then.
  std::optional<State> unshown_{};
  bool tried_out_ = false;
  bool pausing_ = false;
  TrainerStage stage_;
  QuietStretches quiet_;
  // True if TrainResult::stopped comes from the source.
  bool ended_by_source_ = false;
  StepRecord last_step_;
};

void Trainer::Implementation::load(const State& state, bool forks) {
  const std::string_view function = forks ? "fork()" : "load_state()";
  stage_.require_idle(function);
  stage_.require_usable(function);
  if (result_.steps > 0 || epoch_) {
    throw_error("{} was called after {} steps; accepted: before anything is trained or loaded",
                function, result_.steps);
  }
  // There is no state until all of it has been loaded.
  stage_.set_whole(false);
  try {
    StateVisitor visitor = forks ? StateVisitor::forking(state) : StateVisitor::out_of(state);
    visit_state(visitor);
  } catch (...) {
    stage_.broken_by(function, fmt::format("{} has thrown", function));
    throw;
  }
  show(kModelWeights);
  stage_.set_whole(true);
}

void Trainer::Implementation::visit_state(StateVisitor& state) {
  const Showing as_trained(*this, std::nullopt);
  if (state.loading()) result_ = {};
  const std::string saved = state.bound("configuration", bound_.text());
  std::set<std::string_view> forgotten;
  if (state.forks()) {
    forgotten = bound_.forgotten(saved);
  } else {
    bound_.require_same(saved);
  }
  for (const NamedArray& array : parameters()) visit_array(state, "parameter.", array);
  for (const NamedArray& array : buffers()) visit_array(state, "buffer.", array);
  steps_.visit_state(state, forgotten);

  visit_result(state, result_);
  visit_digests(state);
  bind_data(state, *objective_);
  bool in_epoch = epoch_.has_value();
  walk_.visit_state(state, in_epoch, steps_.noise_scale());
  if (walk_.planner().carries()) {
    state.value("carried.loss", last_loss_);
    state.optional("carried.weight", last_weight_);
  }
  state.flag("ended_by_source", ended_by_source_);
  std::optional<EpochPart> part = in_epoch ? std::nullopt : result_.part;
  visit_part(state, part);
  // The limits that ended the training of the state may be others now.
  if (state.forks()) result_.stopped = walk_.reached_limit();
  if (state.loading()) place_after_load(in_epoch, part, state.forks());
  if (epoch_) epoch_->visit_state(state);
  if (state.loading()) result_.part = epoch_ ? walk_.part(epoch_->whole_steps()) : part;
  listeners_.visit_state(state, *this);
}

void Trainer::Implementation::visit_digests(StateVisitor& state) {
  const bool there = state.has("digest.chain", digests_.has_value());
  if (state.loading() && !there) digests_.reset();
  if (!there) return;
  std::int64_t every = options_.digest_every;
  state.count("digest.every", every);
  if (every != options_.digest_every && state.forks()) return digests_.reset();
  if (every != options_.digest_every) {
    throw_error("the state is of a training with digest_every {}, not {}; accepted: the same",
                every, options_.digest_every);
  }
  std::string chain = digests_.value_or(Digest()).to_text();
  state.text("digest.chain", chain);
  if (!state.loading()) return;
  try {
    digests_ = Digest::parse(chain);
  } catch (const Error& error) {
    throw_error("the state's 'digest.chain': {}", error.what());
  }
  if (digests_ != Digest()) result_.digest = digests_;
}

// Continues from the loaded state; `part` is that of an incomplete epoch that was evaluated.
void Trainer::Implementation::place_after_load(bool in_epoch, const std::optional<EpochPart>& part,
                                               bool forks) {
  report_result();
  result_.time = walk_.time();
  // A run stopped by its source continues if the source now has more steps.
  if (std::exchange(ended_by_source_, false)) {
    result_.stopped.clear();
    if (walk_.has_ended()) end_by_source();
  }
  const std::int64_t begun = result_.epochs + (in_epoch ? 1 : 0);
  if (options_.epochs < begun) {
    throw_error("{} epochs are asked for, but epoch {} has begun; accepted: at least {}",
                options_.epochs, begun, begun);
  }
  // The trace of a fork need not have the steps that were taken.
  if (forks) {
    if (in_epoch) epoch_.emplace(walk_, trace_);
    return;
  }
  if (result_.stopped.empty() && trace_) {
    require_same_epochs(*trace_, walk_, part.has_value());
  } else if (result_.stopped.empty() && part) {
    throw_error(
        "{}: epoch {} of the run ended before this step, and now it continues; accepted: a source "
        "that ends there, too",
        source_->where(walk_.step()), result_.epochs + 1);
  }
  if (in_epoch) epoch_.emplace(walk_, trace_);
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
bool Trainer::state_in_step(
    const std::function<void(const State& state, std::int64_t steps)>& take) const {
  return own().state_in_step(take);
}
void Trainer::load_state(const State& state) {
  own().load(state, /*forks=*/false);
}
void Trainer::fork(const State& state) {
  own().load(state, /*forks=*/true);
}
void Trainer::with_weights(std::string_view name, const std::function<void()>& use) const {
  own().with_weights(name, use);
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

std::string_view Trainer::part_under_way() const {
  return own().part_under_way();
}

std::int64_t Trainer::minibatches_at_once() const {
  return own().minibatches_at_once();
}

}  // namespace rubato
