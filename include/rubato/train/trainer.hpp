#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/core/error.hpp>
#include <rubato/plan/assignment.hpp>
#include <rubato/plan/budget.hpp>
#include <rubato/plan/plan.hpp>
#include <rubato/plan/sampler.hpp>
#include <rubato/plan/step_source.hpp>
#include <rubato/recipe/optimizer_options.hpp>
#include <rubato/runtime/faults.hpp>
#include <rubato/runtime/hosts.hpp>
#include <rubato/runtime/own_reducer.hpp>
#include <rubato/runtime/workers.hpp>
#include <rubato/scaling/lr_schedule.hpp>
#include <rubato/scaling/rule_registry.hpp>
#include <rubato/state/state.hpp>
#include <rubato/trace/trace.hpp>
#include <rubato/train/gradient_transform.hpp>
#include <rubato/train/metric.hpp>
#include <rubato/train/objective.hpp>
#include <rubato/train/observer.hpp>
#include <rubato/train/own_optimizer.hpp>
#include <rubato/train/parameter_group.hpp>
#include <rubato/train/records.hpp>
#include <rubato/train/span.hpp>

namespace rubato {

/// Which evaluator of the objective computes what.
enum class Dealing {
  /// Each thread has one, and computes whatever comes to it.
  by_thread,
  /// All on one thread, by as many evaluators as there would be threads, in turns that begin
  /// elsewhere in each step. A model that keeps something from one forward to the next where the
  /// trainer does not see it (a plain member, a static variable) comes to other bits than with
  /// another number of threads: always, and not when scheduling happens to show it. For
  /// comparisons.
  in_turns,
};

struct TrainOptions {
  // What is computed.

  /// Passes over the training data, at least 1.
  std::int64_t epochs = 5;
  /// What training may come to within them.
  Budget budget{};
  /// Samples in a minibatch.
  std::int64_t minibatch_size = 32;
  /// Whether samples that fill no step of their epoch are dropped or carried into the next step
  /// (docs/adr/0028).
  Remainder remainder = Remainder::drop;
  /// The learning rate of a step of the reference batch size, above 0.
  double learning_rate = 0.01;
  /// The batch size, in samples, for which the learning rate was tuned.
  std::int64_t reference_batch_size = 128;
  /// How the learning rate follows the batch size: what RuleRegistry::make() takes.
  std::string rule = "linear";
  /// The rules there are; a user's own are added here.
  RuleRegistry rules{};
  /// How it changes in the course of training, before the rule: what make_lr_schedule() takes.
  std::string schedule = "constant";
  ScheduleUnit schedule_unit = ScheduleUnit::epochs;
  /// A schedule of the user's own, instead.
  std::function<std::unique_ptr<LrSchedule>()> own_schedule{};
  /// What a schedule that watches a metric (plateau) hears after each epoch; its mode follows it.
  WatchedMetric watch = Metric::test_loss;
  OptimizerOptions optimizer{.momentum = 0.5};
  /// An optimizer of the user's own, instead; torch_optimizer() makes it of libtorch's.
  OwnOptimizer own_optimizer{};
  std::vector<ParameterGroup> groups{};
  std::optional<LookaheadOptions> lookahead{};
  /// The mean gradient is shortened to this norm where it is longer; above 0.
  std::optional<double> clip_norm{};
  /// Every element of the mean gradient is bounded to [-clip_value, clip_value]; above 0. Not
  /// together with clip_norm.
  std::optional<double> clip_value{};
  /// What is done to the mean gradient after that, one after the other: noise, signs, whatever the
  /// user makes (docs/extending.md).
  std::vector<OwnGradientTransform> gradient_transforms{};
  /// The order of the samples of an epoch: in_order(), weighted(), one of the user's own. Empty is
  /// a new random permutation for each epoch.
  Sampler sampler{};
  /// Of all random numbers: shuffling, and what is drawn for a minibatch.
  std::uint64_t seed = 42;

  // What is measured besides: changes no bit of the result.

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
  /// Hears what each thread spends its time on. An exception ends training, of an update's span
  /// without a state. Has no measurable cost where it is empty.
  OnSpan on_span{};

  // Who computes it: changes no bit of the result.

  /// Emulated cores at the steps for which the trace does not say.
  std::int64_t cores = 8;
  Assignment assignment = Assignment::contiguous;
  /// How gradients are summed: "auto" or one of reducer_names(). One that is not reproducible
  /// changes bits.
  std::string reduce = "auto";
  /// A reducer of the user's own, instead; `reduce` is then "auto".
  OwnReducer own_reducer{};
  /// Refuses what would make the result depend on who computes it: a reducer that is not
  /// reproducible.
  bool exact = true;
  /// Cores that die and cores that are slow.
  FaultOptions faults{};
  std::vector<Straggler> stragglers{};
  /// Threads; 0 takes as many as this process may use (rubato/machine/cpus.hpp).
  int threads = 0;
  Dealing dealing = Dealing::by_thread;
  /// The hosts that train together; empty is this process alone. With several, `cores` are those of
  /// all hosts, and faults, log_minibatches and objectives that need one host are refused.
  std::shared_ptr<Hosts> hosts{};
};

/// What of them concerns evaluations.
[[nodiscard]] inline EvaluationOptions evaluation_options(const TrainOptions& options) {
  return {.top_k = options.top_k, .mse = options.mse, .perplexity = options.perplexity};
}

/// Training that came to a number which is infinite or NaN: the loss or the gradient of a step,
/// which was then not applied, or the loss on the test set after it.
class Diverged : public Error {
 public:
  /// `what` says what became infinite or NaN.
  Diverged(std::string_view what, const StepRecord& step, std::string_view rule);
  /// The last step.
  [[nodiscard]] const StepRecord& step() const { return step_; }

 private:
  StepRecord step_;
};

/// Trains an objective as a trace says, whatever it is: a network of libtorch (TorchTrainer), a
/// model with a gradient in closed form, a function of the user's own.
///
///     rubato::Trainer trainer(std::move(objective), trace, options);
///     const rubato::TrainResult result = trainer.fit();
///
/// The trained parameters are the same bits for every number of threads and cores, either
/// assignment and every reproducible reducer, on machines of one instruction set.
///
/// Not to be used by two threads at once. It may be moved whenever it is not in fit(); whatever
/// else is asked of the one that was moved from throws Error.
class Trainer {
 public:
  /// Checks everything that can be checked before the first step. Throws Error: options out of
  /// range, data that does not fit the minibatch or the trace (all rows of it), a trace that ends
  /// before the epochs do.
  Trainer(std::unique_ptr<Objective> objective, Trace trace, TrainOptions options);
  /// The same with steps that are asked for when they are needed. Of these only a trace is checked
  /// beforehand; fit() throws Error for a step that cannot be taken.
  Trainer(std::unique_ptr<Objective> objective, std::unique_ptr<StepSource> source,
          TrainOptions options);
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// The trainer keeps a share in the observer's ownership for as long as it lives; whoever wants
  /// to read it keeps another. Observers hear of everything in the order in which they were added.
  /// Throws Error for null, for the name of another one, for one that saves something and has no
  /// name, and in fit(); and what its on_added() does.
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

  /// Trains all epochs, or what is left of them; with a trace under TraceEnd::stop, or a source
  /// that ends, as many as it holds. Where hosts have to form a new group (Hosts::regroup_due()) it
  /// returns as for a pause, and goes on when it is called again. Throws Error after a fit() or
  /// load_state() that threw, and when an observer calls it. The first one lets the objective try
  /// itself out (Objective::try_out()), so that what cannot work is found at once. Throws Diverged;
  /// TrainingError for what the objective throws; Error when the schedule watches what there is not
  /// or a rate cannot be applied; and whatever an observer throws.
  TrainResult fit();

  /// All that training has come to, its observers included. Another trainer of the same
  /// configuration goes on from it to the same bits. Throws Error where there is none
  /// (has_state()); in fit() it is there for observers, in Observer::between_steps().
  [[nodiscard]] State state() const;
  /// Whether there is a state to take. After a fit() that threw it is that of the last complete
  /// step or epoch: of the step before where an evaluator, the rule, the schedule or an observer's
  /// on_gradients() or on_fault() threw, and of the one that observers heard of where their
  /// on_step(), on_evaluate() or on_epoch() did. There is none after an exception in the middle of
  /// the update of the shared parameters (an optimizer's, a gradient transform's, Objective's
  /// move_averages()), and none after a load_state() that threw.
  [[nodiscard]] bool has_state() const;
  /// Before the first fit(), with the observers added whose state is to be loaded. Throws Error
  /// when the state is of another configuration, of other data or of other rows of the trace than
  /// those used so far, saying what differs, or is no trainer's; the trainer is then of no more
  /// use. Throws Error, too, once anything was trained or loaded.
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
  /// Gradient buffers that were alive at one time, at most.
  [[nodiscard]] std::int64_t gradient_buffers() const;

  /// What it trains, and the threads it trains on.
  [[nodiscard]] Objective& objective() const;
  [[nodiscard]] Workers& workers() const;

 private:
  class Implementation;
  [[nodiscard]] Implementation& own() const;

  std::unique_ptr<Implementation> implementation_;
};

}  // namespace rubato
