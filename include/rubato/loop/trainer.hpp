#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/base/error.hpp>
#include <rubato/base/index.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/faults.hpp>
#include <rubato/loop/gradient_transform.hpp>
#include <rubato/loop/hosts.hpp>
#include <rubato/loop/intervals.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/records.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/numbers/adjustments.hpp>
#include <rubato/numbers/lr_schedule.hpp>
#include <rubato/numbers/rule.hpp>
#include <rubato/steps/random.hpp>
#include <rubato/steps/step_plan.hpp>
#include <rubato/steps/step_source.hpp>
#include <rubato/steps/trace.hpp>

namespace rubato {

// rubato/loop/reducer.hpp defines these, for a user's own reducers.
template <class T>
class Reducer;
struct ReducerSize;
struct Meeting;

/// The kinds of work that a thread does in a step.
enum class Activity {
  /// Gathering the samples of a minibatch.
  gather,
  forward,
  loss,
  backward,
  /// Adding the gradient of a minibatch to others, and clearing the memory for the next one.
  merge,
  /// Exchanging sums with the other hosts, and waiting for them.
  exchange,
  /// All that follows the sum: norms, rule, optimizer, buffers.
  update,
  /// Testing after an epoch.
  test,
};

inline constexpr std::array<Choice<Activity>, 8> kActivities{{{Activity::gather, "gather"},
                                                              {Activity::forward, "forward"},
                                                              {Activity::loss, "loss"},
                                                              {Activity::backward, "backward"},
                                                              {Activity::merge, "merge"},
                                                              {Activity::exchange, "exchange"},
                                                              {Activity::update, "update"},
                                                              {Activity::test, "test"}}};

/// A time span in which a thread did one thing. The spans of a thread do not overlap, and include
/// every phase that an objective reports (EvaluatorProgress::enter()).
struct Span {
  using Moment = std::chrono::steady_clock::time_point;

  Activity activity = Activity::gather;
  EpochIndex epoch{};
  /// The step; for a test, the last step before it.
  StepIndex step{};
  /// The minibatch of the epoch, and the core that computed it; empty for work on the whole step
  /// (the exchange, the update, and the part of the sum that is left once all gradients are there)
  /// and for a test.
  std::optional<MinibatchIndex> minibatch{};
  std::optional<CoreRank> core{};
  /// The number of cores, beginning with that one, whose minibatches were computed in one pass.
  std::int64_t cores = 1;
  /// The number of minibatches, beginning with that one, that an evaluator computed in one pass.
  std::int64_t minibatches = 1;
  /// The thread, from 0 to Workers::threads() - 1. Work on the whole step is done by thread 0, the
  /// calling thread.
  int thread = 0;
  Moment begin{};
  Moment end{};
};

/// Called by several threads at once, each at the end of its own spans. Also reports the work of a
/// core that died.
using OnSpan = std::function<void(const Span& span)>;

/// Called by several threads at once, whenever the sums of two cores become one, by reducers whose
/// cores meet (Reducer::observe_meetings()). Cores that one task computes (Span::cores) have a sum
/// together, and meet others as the first of them.
using OnMeeting = std::function<void(StepIndex step, const Meeting& meeting)>;

/// Makes a user's own reducer, for parameters of either type, as a value: a class derived from
/// Reducer, instead of one of reducer_names().
///
/// Reducer documents what a training requires of it. Its sum is checked after each step:
/// finish_step() must return one that contains every minibatch once and, if norms are wanted
/// (ReducerSize::norms), has all squares taken, which Reducer::add() and merge() ensure. An
/// incomplete sum ends training with an Error, and the step is undone.
struct OwnReducer {
  /// The name in messages; one line. It binds a state if the reducer is not reproducible.
  std::string name{};
  /// True if its author promises that every value, the loss and the squares are summed in the one
  /// order of all reproducible reducers: neighbouring leaves are added, then neighbouring sums,
  /// level by level, and one without a neighbour moves up unchanged, so that six leaves are
  /// ((0+1)+(2+3))+(4+5), on whatever cores they are and in whatever order these finish. Otherwise
  /// the result may depend on who computes it, which TrainOptions::exact refuses. verify() detects
  /// a broken promise.
  bool reproducible = false;
  std::function<std::unique_ptr<Reducer<float>>(const ReducerSize& size, Workers& workers)>
      of_float{};
  std::function<std::unique_ptr<Reducer<double>>(const ReducerSize& size, Workers& workers)>
      of_double{};
  /// Returns the number of buffers that a step keeps at once, as buffers_of() does, to check that
  /// there is enough memory for them. If it is empty, all leaves are assumed.
  std::function<std::int64_t(const ReducerSize& size, std::int64_t cores, int threads)> buffers{};

  [[nodiscard]] explicit operator bool() const { return of_float || of_double; }
};

/// How minibatches are dealt to the evaluators of an objective.
enum class Dealing {
  /// Each thread has an evaluator, which computes whatever the thread takes.
  by_thread,
  /// All evaluators run on one thread, as many as there would be threads, in turns that start at a
  /// different evaluator in each step. This deterministically reveals a model that keeps something
  /// from one forward to the next where the trainer does not see it (a plain member, a static
  /// variable). Meant for comparisons.
  in_turns,
};

struct TrainOptions {
  // The following options determine the result.

  /// Passes over the training data, at least 1.
  std::int64_t epochs = 5;
  /// Limits besides the epochs.
  Budget budget{};
  /// Samples in a minibatch.
  std::int64_t minibatch_size = 32;
  /// The treatment of samples that do not fill a step at the end of an epoch: they are dropped, or
  /// carried into the next (docs/adr/0028).
  Remainder remainder = Remainder::drop;
  /// The learning rate of a step of the reference batch size, above 0.
  double learning_rate = 0.01;
  /// The batch size, in samples, for which the learning rate was tuned.
  std::int64_t reference_batch_size = 128;
  /// How the learning rate follows the batch size: the text of a built-in rule, or what
  /// RuleRegistry::choose() returns for a user's own.
  RuleChoice rule = "linear";
  /// Other changes with the batch size: of decay, and of memories of the optimizer.
  RuleAdjustments adjustments{};
  /// How the learning rate changes during training, before the rule.
  ScheduleChoice schedule = "constant";
  ScheduleUnit schedule_unit = ScheduleUnit::epochs;
  /// A user's own schedule, which replaces `schedule`.
  std::function<std::unique_ptr<LrSchedule>()> own_schedule{};
  /// The metric that a schedule (plateau) watches after each epoch; the schedule's mode follows it.
  WatchedMetric watch = Metric::test_loss;
  OptimizerOptions optimizer{.momentum = 0.5};
  /// A user's own optimizer, which replaces `optimizer`; torch_optimizer() wraps one of libtorch's.
  OwnOptimizer own_optimizer{};
  std::vector<ParameterGroup> groups{};
  std::optional<LookaheadOptions> lookahead{};
  // Options that training has as users of the table of options have them: rate_factors, clip_norm,
  // clip_value, ema_half_life.
#define RUBATO_STEP_OPTION(type, member, fallback, ...) type member = fallback;
#include <rubato/loop/step_options.def>
#undef RUBATO_OPTION
  /// Applied to the mean gradient after clipping, in order (docs/extending.md).
  std::vector<OwnGradientTransform> gradient_transforms{};
  /// The order of the samples of an epoch: in_order(), weighted(), or a user's own. If empty, each
  /// epoch has a new random permutation.
  Sampler sampler{};
  /// Seed of all random numbers: of shuffling, and of the minibatches.
  std::uint64_t seed = 42;

  // The following options add measurements and change no bit of the result.

  /// The k of Evaluation::top_k_accuracy; 0 to leave it out.
  std::int64_t top_k = 0;
  /// Ask for Evaluation::mse and Evaluation::perplexity.
  bool mse = false;
  bool perplexity = false;
  /// The bytes of text for which a target of the test set stands on average. Asks for
  /// Evaluation::bits_per_byte, the loss / ln 2 / bytes_per_target; 0 leaves it out. The loss must
  /// be a cross entropy.
  double bytes_per_target = 0;
  /// Asks for StepRecord::noise_scale and StepRecord::measured_gain.
  bool log_noise = false;
  /// Asks for StepRecord::digest of the steps of the whole training whose number, from 1, is
  /// divisible by this; 0 for none. A state is continued with the same value.
  std::int64_t digest_every = kDigestEvery;
  /// The user's own metrics, in EpochRecord::metrics.
  std::vector<OwnMetric> metrics{};
  /// Asks for StepRecord::minibatches.
  bool log_minibatches = false;
  /// Receives what each thread does. An exception ends training; from the span of an update,
  /// without a state. No measurable cost if empty.
  OnSpan on_span{};
  /// Receives the meetings of the cores' sums, under the same conditions.
  OnMeeting on_meeting{};

  // The following options decide who computes what, and change no bit of the result.

  /// The number of emulated cores in steps for which the trace gives none.
  std::int64_t cores = 8;
  Assignment assignment = Assignment::contiguous;
  /// How gradients are summed: "auto" or one of reducer_names(). A reducer that is not reproducible
  /// changes bits.
  std::string reduce = "auto";
  /// A user's own reducer, which requires that `reduce` is "auto".
  OwnReducer own_reducer{};
  /// Refuses whatever would make the result depend on threads or cores, such as a reducer that is
  /// not reproducible.
  bool exact = true;
  /// Cores that die and cores that are slow.
  FaultOptions faults{};
  std::vector<Straggler> stragglers{};
  /// The number of threads; 0 uses as many as this process may (rubato/base/machine.hpp).
  int threads = 0;
  Dealing dealing = Dealing::by_thread;
  /// The hosts that train together; if empty, this process trains alone. With several, `cores` are
  /// those of all hosts together, and faults, log_minibatches and objectives that need one host are
  /// refused.
  std::shared_ptr<Hosts> hosts{};
};

/// Returns the evaluation options contained in `options`.
[[nodiscard]] inline EvaluationOptions evaluation_options(const TrainOptions& options) {
  return {.top_k = options.top_k,
          .mse = options.mse,
          .perplexity = options.perplexity,
          .bytes_per_target = options.bytes_per_target};
}

/// Thrown when training reaches a number that is infinite or NaN: the loss or the gradient of a
/// step, which was then not applied, or the test loss after it.
class Diverged : public Error {
 public:
  /// Advice that helps if the steps were too large.
  static constexpr std::string_view kSmallerSteps = "try a lower --lr or another --rule";

  /// `what` says which number became infinite or NaN, and `advice` how to avoid it.
  Diverged(std::string_view what, const StepRecord& step, std::string_view rule,
           std::string_view advice = kSmallerSteps);
  /// The last step.
  [[nodiscard]] const StepRecord& step() const { return step_; }
  [[nodiscard]] const std::string& advice() const { return advice_; }

 private:
  StepRecord step_;
  std::string advice_;
};

/// Trains an objective under a trace: a libtorch network (TorchTrainer), a model with a gradient in
/// closed form, or a user's own function.
///
///     rubato::Trainer trainer(std::move(objective), trace, options);
///     const rubato::TrainResult result = trainer.fit();
///
/// The trained parameters are the same bits for every number of threads and cores, either
/// assignment and every reproducible reducer, on machines of one instruction set.
///
/// Must not be used by two threads at once. It may be moved outside of fit(); every call on a
/// moved-from trainer throws Error.
class Trainer {
 public:
  /// Checks everything that can be checked before the first step. Throws Error for options out of
  /// range, for data that does not fit the minibatch or the trace (all rows of it), and for a trace
  /// that ends before the epochs do.
  Trainer(std::unique_ptr<Objective> objective, Trace trace, TrainOptions options);
  /// The same with steps from a source, which is asked when a step is needed. Only a trace can be
  /// checked in advance; fit() throws Error for a step that cannot be taken.
  Trainer(std::unique_ptr<Objective> objective, std::unique_ptr<StepSource> source,
          TrainOptions options);
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Shares ownership of the observer for the lifetime of the trainer; keep a share of your own to
  /// read it. Observers are called in the order in which they were added. Throws Error for null,
  /// for a name already in use, for an observer that saves something and has no name, and during
  /// fit(); also throws whatever on_added() throws.
  void add_observer(std::shared_ptr<Observer> observer);
  /// Adds the observer under a name other than Observer::name(), so that a second one of a kind has
  /// its own state.
  void add_observer(std::shared_ptr<Observer> observer, std::string name);
  /// Makes the observer and adds it:
  ///
  ///     const auto best = trainer.add_observer<rubato::BestWeights>(rubato::Metric::test_loss);
  template <std::derived_from<Observer> T, class... Arguments>
  std::shared_ptr<T> add_observer(Arguments&&... arguments) {
    auto observer = std::make_shared<T>(std::forward<Arguments>(arguments)...);
    add_observer(observer);
    return observer;
  }
  /// Makes the observer and adds it under the caller's name:
  ///
  ///     const auto most_accurate = trainer.add_named_observer<rubato::BestWeights>(
  ///         "most-accurate", rubato::Metric::test_accuracy);
  template <std::derived_from<Observer> T, class... Arguments>
  std::shared_ptr<T> add_named_observer(std::string name, Arguments&&... arguments) {
    auto observer = std::make_shared<T>(std::forward<Arguments>(arguments)...);
    add_observer(observer, std::move(name));
    return observer;
  }

  /// Trains all epochs or the rest of them; with TraceEnd::stop, or a source that ends, as many as
  /// that provides. If hosts have to form a new group (Hosts::regroup_due()), it returns as for a
  /// pause and continues when called again. The first call lets the objective try itself out
  /// (Objective::try_out()), so that failures show at once. Throws Diverged, TrainingError for
  /// exceptions of the objective, Error if the schedule watches a metric that does not exist or a
  /// rate cannot be applied, and whatever an observer throws. Throws Error if called by an
  /// observer, or again after a fit() or load_state() that threw.
  TrainResult fit();

  /// Returns the complete state of training, observers included. Another trainer with the same
  /// configuration continues from it to the same bits. Throws Error if there is no state
  /// (has_state()). During fit(), observers may call it in Observer::between_steps().
  [[nodiscard]] State state() const;
  /// Meant for another thread that wants to save the state while fit() runs, however long the step
  /// takes: calls `take` with the state before the step being computed, or before the test, and the
  /// number of steps in that state. Waits for an update that has begun, and for observers between
  /// two steps; `take` delays the next update. Returns false, without a call, if fit() is not
  /// running or ends first. Throws whatever `take` throws.
  bool state_in_step(const std::function<void(const State& state, std::int64_t steps)>& take) const;
  /// Returns whether there is a state. After a fit() that threw, it is that of the last complete
  /// step or epoch: of the step before, if an evaluator, the rule, the schedule or an observer's
  /// on_gradients() or on_fault() threw; of the step just completed, if an observer's on_step(),
  /// on_evaluate() or on_epoch() did. There is none after an exception in the middle of the update
  /// of the shared parameters (an optimizer's, a gradient transform's, Objective's
  /// move_averages()), and none after a load_state() that threw.
  [[nodiscard]] bool has_state() const;
  /// Must be called before the first fit(), after adding the observers whose state is to be loaded.
  /// Throws Error if the state belongs to another configuration, to other data or to other trace
  /// rows than those already used, naming the difference, or is not a trainer's; the trainer is
  /// then unusable. Also throws Error once anything has been trained or loaded.
  void load_state(const State& state);

  /// Like load_state(), but for a state of a trainer with other options: training continues from
  /// its place in the epochs with the parts of this one. These may differ: rule, learning rate,
  /// schedule, the optimizer and its options, Lookahead, clipping, gradient transforms, sampler and
  /// seed (which order the samples that come next), limits, and all rows of the trace, of which the
  /// next step takes the row after those that were taken. A rule, a schedule or an optimizer begins
  /// anew if the state has another one, or one with another memory: momentum where there was none,
  /// another form of momentum, AMSGrad. So do observers for which the state has nothing. Throws
  /// Error as load_state() does, and for anything else that differs: the model, the data, the size
  /// of a minibatch, the remainder, parameter groups, the kind of clock.
  void fork(const State& state);

  /// Calls `use` while parameters() are the weights of that name that training has beside the
  /// model's: "ema" for the moving averages (TrainOptions::ema_half_life). Before the first update,
  /// they are the model's. Not during fit(), in which observers call Training::with_weights().
  /// Throws Error for the name of weights that this training does not have.
  void with_weights(std::string_view name, const std::function<void()>& use) const;

  /// The result so far; after a fit() that threw, up to the last complete step.
  [[nodiscard]] const TrainResult& result() const;

  /// All parameters, and all buffers, by the names that the objective gives them: views of the
  /// state in training.
  [[nodiscard]] const std::vector<NamedArray>& parameters() const;
  [[nodiscard]] const std::vector<NamedArray>& buffers() const;

  [[nodiscard]] const TrainOptions& options() const;
  /// The number of threads in use.
  [[nodiscard]] int threads() const;
  /// The largest number of gradient buffers alive at one time.
  [[nodiscard]] std::int64_t gradient_buffers() const;
  /// The largest number of minibatches that a core computes in one pass:
  /// Objective::minibatches_at_once(), or 1 if something needs the gradient of each.
  [[nodiscard]] std::int64_t minibatches_at_once() const;
  /// Returns which of the user's parts fit() is calling, or was calling when it threw, by the name
  /// of its option: "rule", "sampler", "schedule", "transform", "optimizer", "reduce" or "metric".
  /// Empty if it is none of them.
  [[nodiscard]] std::string_view part_under_way() const;

  /// The objective in training, and the threads it uses.
  [[nodiscard]] Objective& objective() const;
  [[nodiscard]] Workers& workers() const;

 private:
  class Implementation;
  [[nodiscard]] Implementation& own() const;

  std::unique_ptr<Implementation> implementation_;
};

}  // namespace rubato
