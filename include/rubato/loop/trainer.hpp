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
#include <rubato/loop/objective.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/records.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/numbers/lr_schedule.hpp>
#include <rubato/numbers/rule.hpp>
#include <rubato/steps/random.hpp>
#include <rubato/steps/step_plan.hpp>
#include <rubato/steps/step_source.hpp>
#include <rubato/steps/trace.hpp>

namespace rubato {

// rubato/loop/reducer.hpp has them, for reducers of the user's own.
template <class T>
class Reducer;
struct ReducerSize;
struct Meeting;

/// What a thread does in a step.
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
  /// What comes after the sum: norms, rule, optimizer, buffers.
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
  /// Of a test the last step before it.
  StepIndex step{};
  /// The minibatch of the epoch, and the core that computed it; empty for work on the whole step
  /// (the exchange, the update, and the part of the sum that follows when all gradients are there)
  /// and for a test.
  std::optional<MinibatchIndex> minibatch{};
  std::optional<CoreRank> core{};
  /// How many minibatches, from that one on, which an evaluator computed in one pass.
  std::int64_t minibatches = 1;
  /// From 0 to Workers::threads() - 1; 0, the calling thread, for work on the whole step.
  int thread = 0;
  Moment begin{};
  Moment end{};
};

/// Called by several threads at once, each at the end of its own spans. Reports the work of a core
/// that died, too.
using OnSpan = std::function<void(const Span& span)>;

/// Called by several threads at once: where the sums of two cores become one in a step, by reducers
/// that have such places (Reducer::hear_meetings()).
using OnMeeting = std::function<void(StepIndex step, const Meeting& meeting)>;

/// Makes a reducer of the user's own, for parameters of either type, as a value: a class derived
/// from Reducer, in the place of one of reducer_names().
///
/// What a training asks of it is what Reducer says. Its sum is checked after each step: that
/// finish_step() gives one, with every minibatch in it once and, where norms are wanted
/// (ReducerSize::norms), with all squares taken, which Reducer::add() and merge() see to. A sum in
/// which something is missing ends training with an Error; the step is as if it had not been.
struct OwnReducer {
  /// Names it in messages; one line. Binds a state where it is not reproducible.
  std::string name{};
  /// Whether its maker promises that every value, the loss and the squares are summed in the one
  /// order of all reproducible reducers: leaves that are neighbours are added, then sums that are
  /// neighbours, level by level, and one without a neighbour goes up as it is, so that six leaves
  /// are ((0+1)+(2+3))+(4+5), whatever cores they are on and in whatever order these come. Else the
  /// result may depend on who computes it, which TrainOptions::exact refuses. verify() finds a
  /// promise that is not kept.
  bool reproducible = false;
  std::function<std::unique_ptr<Reducer<float>>(const ReducerSize& size, Workers& workers)>
      of_float{};
  std::function<std::unique_ptr<Reducer<double>>(const ReducerSize& size, Workers& workers)>
      of_double{};
  /// As buffers_of(): the buffers that a step keeps at once, for the check that there is memory for
  /// them. Without it, all leaves.
  std::function<std::int64_t(const ReducerSize& size, std::int64_t cores, int threads)> buffers{};

  [[nodiscard]] explicit operator bool() const { return of_float || of_double; }
};

/// How minibatches are dealt to the evaluators of an objective.
enum class Dealing {
  /// Each thread has an evaluator, which computes whatever the thread takes.
  by_thread,
  /// All on one thread, by as many evaluators as there would be threads, in turns that start at
  /// another evaluator in each step. This reveals, deterministically, a model that keeps something
  /// from one forward to the next where the trainer does not see it (a plain member, a static
  /// variable). For comparisons.
  in_turns,
};

struct TrainOptions {
  // What is computed.

  /// Passes over the training data, at least 1.
  std::int64_t epochs = 5;
  /// Limits besides the epochs.
  Budget budget{};
  /// Samples in a minibatch.
  std::int64_t minibatch_size = 32;
  /// Whether samples that do not fill a step at the end of an epoch are dropped or carried into the
  /// next (docs/adr/0028).
  Remainder remainder = Remainder::drop;
  /// The learning rate of a step of the reference batch size, above 0.
  double learning_rate = 0.01;
  /// The batch size, in samples, for which the learning rate was tuned.
  std::int64_t reference_batch_size = 128;
  /// How the learning rate follows the batch size: what RuleRegistry::make() takes.
  std::string rule = "linear";
  /// The rules there are; a user's own are added here.
  RuleRegistry rules{};
  /// How the learning rate changes during training, before the rule: what make_lr_schedule() takes.
  std::string schedule = "constant";
  ScheduleUnit schedule_unit = ScheduleUnit::epochs;
  /// A schedule of the user's own, instead.
  std::function<std::unique_ptr<LrSchedule>()> own_schedule{};
  /// The metric that a schedule (plateau) watches after each epoch; the schedule's mode follows it.
  WatchedMetric watch = Metric::test_loss;
  OptimizerOptions optimizer{.momentum = 0.5};
  /// An optimizer of the user's own, instead; torch_optimizer() makes it of libtorch's.
  OwnOptimizer own_optimizer{};
  std::vector<ParameterGroup> groups{};
  std::optional<LookaheadOptions> lookahead{};
  /// The mean gradient is shortened to this norm if it is longer; above 0.
  std::optional<double> clip_norm{};
  /// Every element of the mean gradient is bounded to [-clip_value, clip_value]; above 0. Not
  /// together with clip_norm.
  std::optional<double> clip_value{};
  /// Applied to the mean gradient after clipping, in order (docs/extending.md).
  std::vector<OwnGradientTransform> gradient_transforms{};
  /// The order of the samples of an epoch: in_order(), weighted(), one of the user's own. Empty is
  /// a new random permutation for each epoch.
  Sampler sampler{};
  /// Seeds all random numbers: shuffling, and the minibatches'.
  std::uint64_t seed = 42;

  // What is measured besides. Changes no bit of the result.

  /// Evaluation::top_k_accuracy for so many outputs; 0 is none.
  std::int64_t top_k = 0;
  /// Evaluation::mse and perplexity.
  bool mse = false;
  bool perplexity = false;
  /// StepRecord::noise_scale and measured_gain.
  bool log_noise = false;
  /// Metrics of the user's own: EpochRecord::metrics.
  std::vector<OwnMetric> metrics{};
  /// StepRecord::minibatches.
  bool log_minibatches = false;
  /// Hears what each thread does. An exception ends training; from the span of an update, without a
  /// state. No measurable cost if empty.
  OnSpan on_span{};
  /// Hears where the cores' sums meet, likewise.
  OnMeeting on_meeting{};

  // Who computes it. Changes no bit of the result.

  /// Emulated cores in steps for which the trace gives none.
  std::int64_t cores = 8;
  Assignment assignment = Assignment::contiguous;
  /// How gradients are summed: "auto" or one of reducer_names(). One that is not reproducible
  /// changes bits.
  std::string reduce = "auto";
  /// A reducer of the user's own, instead; `reduce` is then "auto".
  OwnReducer own_reducer{};
  /// Refuses whatever would make the result depend on threads or cores, such as a reducer that is
  /// not reproducible.
  bool exact = true;
  /// Cores that die and cores that are slow.
  FaultOptions faults{};
  std::vector<Straggler> stragglers{};
  /// Threads; 0 takes as many as this process may use (rubato/base/machine.hpp).
  int threads = 0;
  Dealing dealing = Dealing::by_thread;
  /// The hosts that train together; empty is this process alone. With several, `cores` are those of
  /// all hosts, and faults, log_minibatches and objectives that need one host are refused.
  std::shared_ptr<Hosts> hosts{};
};

/// The evaluation options in `options`.
[[nodiscard]] inline EvaluationOptions evaluation_options(const TrainOptions& options) {
  return {.top_k = options.top_k, .mse = options.mse, .perplexity = options.perplexity};
}

/// Training reached a number that is infinite or NaN: the loss or the gradient of a step, which was
/// then not applied, or the test loss after it.
class Diverged : public Error {
 public:
  /// This advice helps if the steps were too large.
  static constexpr std::string_view kSmallerSteps = "try a lower --lr or another --rule";

  /// `what` says what became infinite or NaN, and `advice` what may help.
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
/// closed form, a function of the user's own.
///
///     rubato::Trainer trainer(std::move(objective), trace, options);
///     const rubato::TrainResult result = trainer.fit();
///
/// The trained parameters are the same bits for every number of threads and cores, either
/// assignment and every reproducible reducer, on machines of one instruction set.
///
/// Not to be used by two threads at once. It may be moved outside of fit(); every call on a
/// moved-from trainer throws Error.
class Trainer {
 public:
  /// Checks everything that can be checked before the first step. Throws Error: options out of
  /// range, data that does not fit the minibatch or the trace (all rows of it), a trace that ends
  /// before the epochs do.
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
  /// fit(); and whatever on_added() throws.
  void add_observer(std::shared_ptr<Observer> observer);
  /// Under another name than Observer::name(): a second one of a kind has a state of its own.
  void add_observer(std::shared_ptr<Observer> observer, std::string name);
  /// The same, of a new one:
  ///
  ///     const auto best = trainer.add_observer<rubato::BestWeights>(rubato::Metric::test_loss);
  template <std::derived_from<Observer> T, class... Arguments>
  std::shared_ptr<T> add_observer(Arguments&&... arguments) {
    auto observer = std::make_shared<T>(std::forward<Arguments>(arguments)...);
    add_observer(observer);
    return observer;
  }
  /// And under a name of the caller's:
  ///
  ///     const auto most_accurate = trainer.add_named_observer<rubato::BestWeights>(
  ///         "most-accurate", rubato::Metric::test_accuracy);
  template <std::derived_from<Observer> T, class... Arguments>
  std::shared_ptr<T> add_named_observer(std::string name, Arguments&&... arguments) {
    auto observer = std::make_shared<T>(std::forward<Arguments>(arguments)...);
    add_observer(observer, std::move(name));
    return observer;
  }

  /// Trains all epochs or what is left of them; with TraceEnd::stop, or a source that ends, as many
  /// as that provides. If hosts have to form a new group (Hosts::regroup_due()), it returns as for
  /// a pause and continues when called again. The first call lets the objective try itself out
  /// (Objective::try_out()), so that failures show at once. Throws Diverged, TrainingError for
  /// exceptions of the objective, Error if the schedule watches a metric that does not exist or a
  /// rate cannot be applied, and whatever an observer throws. Cannot be called by an observer, nor
  /// again after a fit() or load_state() that threw: throws Error.
  TrainResult fit();

  /// The complete state of training, observers included. Another trainer with the same
  /// configuration continues from it to the same bits. Throws Error if there is none (has_state()).
  /// During fit(), observers may call it in Observer::between_steps().
  [[nodiscard]] State state() const;
  /// For another thread while fit() runs, which wants to keep what there is however long the step
  /// takes: calls `take` with the state before the step that is being computed, and how many steps
  /// that has, or with the state before the test. Waits for an update that has begun, and for what
  /// observers do between two steps; `take` holds the next update up. False, without a call, where
  /// fit() does not run, or ends first. Throws what `take` does.
  bool state_in_step(const std::function<void(const State& state, std::int64_t steps)>& take) const;
  /// Whether there is a state. After a fit() that threw, it is that of the last complete step or
  /// epoch: of the step before, if an evaluator, the rule, the schedule or an observer's
  /// on_gradients() or on_fault() threw; of the step just completed, if an observer's on_step(),
  /// on_evaluate() or on_epoch() did. There is none after an exception in the middle of the update
  /// of the shared parameters (an optimizer's, a gradient transform's, Objective's
  /// move_averages()), and none after a load_state() that threw.
  [[nodiscard]] bool has_state() const;
  /// To be called before the first fit(), after adding the observers whose state is to be loaded.
  /// Throws Error if the state belongs to another configuration, to other data or to other trace
  /// rows than those already used, naming the difference, or is not a trainer's; the trainer is
  /// then unusable. Also throws Error once anything has been trained or loaded.
  void load_state(const State& state);

  /// What has been trained so far; after a fit() that threw, up to the last complete step.
  [[nodiscard]] const TrainResult& result() const;

  /// All parameters and then all buffers, by the names that the objective gives them: views of the
  /// state in training.
  [[nodiscard]] const std::vector<NamedArray>& parameters() const;
  [[nodiscard]] const std::vector<NamedArray>& buffers() const;

  [[nodiscard]] const TrainOptions& options() const;
  /// Threads in use.
  [[nodiscard]] int threads() const;
  /// The largest number of gradient buffers alive at one time.
  [[nodiscard]] std::int64_t gradient_buffers() const;
  /// Minibatches that a core computes in one pass at most: what Objective::minibatches_at_once()
  /// says, and 1 where something asks for the gradient of each.
  [[nodiscard]] std::int64_t minibatches_at_once() const;
  /// Returns which of the user's parts fit() is calling, or was calling when it threw, by the name
  /// of its option: "rule", "sampler", "schedule", "transform", "optimizer", "reduce" or "metric".
  /// Empty if it is none of them.
  [[nodiscard]] std::string_view part_under_way() const;

  /// What it trains, and the threads it trains on.
  [[nodiscard]] Objective& objective() const;
  [[nodiscard]] Workers& workers() const;

 private:
  class Implementation;
  [[nodiscard]] Implementation& own() const;

  std::unique_ptr<Implementation> implementation_;
};

}  // namespace rubato
