#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/base/error.hpp>
#include <rubato/base/index.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/records.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/numbers/loss_scaler.hpp>
#include <rubato/steps/random.hpp>

namespace rubato {

/// How a fork continues from a state that is bound to another value.
enum class OnFork {
  refused,  ///< not at all
  free,     ///< with its own value
  anew,     ///< with its own value; a part of training forgets what it remembers
};

/// A value that decides the bits of a training: a state is bound to it.
struct BoundValue {
  /// A name that no other value has.
  std::string_view name;
  /// In one line; empty if the training does nothing of the kind, and then no state has it.
  std::string value;
  OnFork on_fork = OnFork::refused;
  /// For OnFork::anew, the part that forgets: "rule", "schedule", "optimizer", "rate".
  std::string_view memory{};
  /// The value that changed with this one in states of older versions, which do not have it.
  std::string_view before{};
};

/// The phases of computing a minibatch, in this order.
enum class Phase {
  /// Gathering its samples, and changing them at random (TorchOptions::augment).
  data,
  forward,
  loss,
  backward,
  /// Forward and loss, without training.
  evaluation,
};

inline constexpr std::array<Choice<Phase>, 5> kPhases{{{Phase::data, "data"},
                                                       {Phase::forward, "forward"},
                                                       {Phase::loss, "loss"},
                                                       {Phase::backward, "backward"},
                                                       {Phase::evaluation, "evaluation"}}};

/// An exception of the objective (the model, the loss, libtorch) in training, with its place:
///
///     forward of minibatch 3 of 8 at epoch 1, step 5 of the run: mat1 and mat2 shapes cannot be
///     multiplied (4x6 and 5x3)
///
/// The original exception is nested in it (std::rethrow_if_nested()). Exceptions that say that
/// there is no memory are passed on as they are (is_out_of_memory(), base/core/system/memory.hpp).
class TrainingError : public Error, public std::nested_exception {
 public:
  /// Must be called in a handler of the original exception.
  TrainingError(Phase phase, const std::string& place, const std::string& message,
                std::string details);
  /// Copies `error` and appends `more` to its message.
  TrainingError(const TrainingError& error, const std::string& more);

  [[nodiscard]] Phase phase() const { return phase_; }
  /// The complete text of the original exception, libtorch's stack included.
  [[nodiscard]] const std::string& details() const { return details_; }

 private:
  Phase phase_;
  std::string details_;
};

/// Must be called in a handler: rethrows the exception being handled as a TrainingError with that
/// phase and place, or as it is if it reports a lack of memory or already has a place.
[[noreturn]] void rethrow_with_place(Phase phase, const std::string& place);

/// The progress of an evaluator through a minibatch: for the place of errors, the record of the
/// step, and spans (TrainOptions::on_span).
class EvaluatorProgress {
 public:
  using Clock = std::chrono::steady_clock;
  /// Called at the end of each phase.
  using OnPhase = std::function<void(Phase phase, Clock::time_point begin, Clock::time_point end)>;

  explicit EvaluatorProgress(OnPhase on_phase = {}) : on_phase_(std::move(on_phase)) {}

  /// Marks the beginning of `phase`, which lasts until another one is entered or the evaluator
  /// returns. Reads the clock only for Phase::data or if there is a listener.
  void enter(Phase phase) {
    end();
    phase_ = phase;
    timed_ = phase == Phase::data || on_phase_;
    if (timed_) begin_ = Clock::now();
  }
  /// Marks the return of the evaluator.
  void end() {
    if (!timed_) return;
    timed_ = false;
    const Clock::time_point now = Clock::now();
    if (phase_ == Phase::data) data_ += now - begin_;
    if (on_phase_) on_phase_(phase_, begin_, now);
  }

  /// The phase of the last enter(); Phase::data before the first.
  [[nodiscard]] Phase phase() const { return phase_; }
  /// The time spent in Phase::data.
  [[nodiscard]] double data_seconds() const { return std::chrono::duration<double>(data_).count(); }

 private:
  OnPhase on_phase_;
  Phase phase_ = Phase::data;
  // True while an entered phase is being timed.
  bool timed_ = false;
  Clock::time_point begin_{};
  Clock::duration data_{};
};

/// Samples of the training data for which an evaluator computes the mean loss and its gradient.
struct Minibatch {
  /// The samples' indices, from 0 to Objective::samples() - 1, in the order of the epoch. Their
  /// number is TrainOptions::minibatch_size; the last minibatch of a training with Remainder::carry
  /// may have fewer. A sample may occur twice: with Remainder::carry at the end of an epoch and the
  /// beginning of the next, or if TrainOptions::sampler repeats it.
  std::span<const std::int64_t> samples;
  /// The key of all random numbers drawn for the minibatch.
  StreamKey stream{};
  /// True for the first minibatch of its step.
  bool first_of_step = false;
  /// The core that computes the minibatch, and its index among that core's minibatches in the step,
  /// from 0. A result that depends on them depends on the number of cores
  /// (Objective::depends_on_cores()).
  CoreRank core{};
  std::int64_t substep = 0;
  /// The loss is multiplied by this before it is differentiated, and the gradient divided by it
  /// afterwards; 1 unless Objective::loss_scale() asks for it.
  double loss_scale = 1;
};

/// The memory to which an evaluator writes its results. All values are 0 at first, except those of
/// the gradient if Objective::overwrites_gradients().
template <class T>
struct Leaf {
  /// The gradient, laid out as ObjectiveOf::flat_parameters().
  std::span<T> gradient;
  /// The ObjectiveOf::averaged() values, which are summed over the minibatches of the step.
  std::span<T> averaged;
  /// A small number that identifies the memory. Leaves with the same number share it, so anything
  /// made for one (such as views) can be reused for the next.
  std::int64_t buffer = 0;
  /// Empty at first: the loss is then the mean of the samples, weighted by their number. An
  /// evaluator whose loss is a sum over weights (of tokens, of classes) stores the sum of the
  /// weights here, at least 0, for every minibatch of a training; the step divides the sums of
  /// gradients and losses by the sum of weights, and is skipped if that is 0. Several minibatches
  /// in one pass store the sum of their weights, added in the order of their gradients. Null if the
  /// caller does not need the weight.
  std::optional<double>* weight = nullptr;
};

/// Computes minibatches, one after the other. Used by one thread at a time, not always by the same.
template <class T>
class Evaluator {
 public:
  Evaluator() = default;
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;
  virtual ~Evaluator() = default;

  /// Returns the mean loss of the samples, or its sum over weights (Leaf::weight), and writes its
  /// gradient to `leaf`. The result must be a function of the minibatch and of the objective's
  /// state at the beginning of the step alone: this is why every number of threads gives the same
  /// bits. Reports its phases to `progress` (EvaluatorProgress::enter()). An exception ends
  /// training, with its place.
  virtual double evaluate(const Minibatch& minibatch, const Leaf<T>& leaf,
                          EvaluatorProgress& progress) = 0;

  /// Evaluates several minibatches that follow each other in a step, of one core or of neighbouring
  /// ones, in one pass: writes their losses, and to `leaf` the sum of their gradients, in the order
  /// of all reproducible reducers (OwnReducer::reproducible). The bits must equal those of
  /// evaluate() for one after the other, and sums of those. Receives at most
  /// Objective::minibatches_at_once() minibatches.
  virtual void evaluate_several(std::span<const Minibatch> minibatches, const Leaf<T>& leaf,
                                std::span<double> losses, EvaluatorProgress& progress);
};

struct EvaluationOptions {
  /// The k of Evaluation::top_k_accuracy, at most the number of classes; 0 to leave it out.
  std::int64_t top_k = 0;
  /// Asks for Evaluation::mse and Evaluation::perplexity.
  bool mse = false;
  bool perplexity = false;
  /// Asks for Evaluation::bits_per_byte: see TrainOptions.
  double bytes_per_target = 0;
};

/// The function to be minimised: the mean of a loss over samples, as a function of parameters,
/// which can be evaluated on any minibatch. The trainer knows nothing else about models and data,
/// and an objective nothing about cores, traces and rules. Objectives derive from ObjectiveOf.
class Objective {
 public:
  Objective() = default;
  Objective(const Objective&) = delete;
  Objective& operator=(const Objective&) = delete;
  virtual ~Objective() = default;

  /// The type of the parameters in training: f32 or f64.
  [[nodiscard]] virtual ElementType type() const = 0;
  /// The number of training samples, at least 1.
  [[nodiscard]] virtual std::int64_t samples() const = 0;

  /// The parameters in training, in the order in which they lie in the flat array.
  [[nodiscard]] virtual const std::vector<TrainedArray>& trained() const = 0;
  /// All parameters, trained or not, and everything else that a step changes: a state keeps them,
  /// and reports show them. They are views of values that change during training.
  [[nodiscard]] virtual const std::vector<NamedArray>& parameters() const = 0;
  [[nodiscard]] virtual const std::vector<NamedArray>& buffers() const;

  /// Everything besides data and parameters on which the results depend.
  [[nodiscard]] virtual std::vector<BoundValue> bound_values() const { return {}; }
  /// Identifies the data for a state: data with the same text are considered the same.
  [[nodiscard]] virtual std::string fingerprint() const = 0;
  [[nodiscard]] virtual std::string test_fingerprint() const { return {}; }

  /// Explains, as a message, why the results depend on which core computes what; empty if they do
  /// not. Such an objective is trained only if TrainOptions::exact is false.
  [[nodiscard]] virtual std::string depends_on_cores() const { return {}; }

  /// Explains, as a message, why several hosts cannot train it (TrainOptions::hosts); empty if they
  /// can, because a step produces nothing but leaves and a tally (ObjectiveOf::tally_bytes()).
  [[nodiscard]] virtual std::string needs_one_host() const { return {}; }

  /// Returns whether there is a test set.
  [[nodiscard]] virtual bool has_test() const { return false; }
  /// Evaluates on the test set with all threads, to the same bits for every number of threads.
  /// Error messages contain `when`: " after epoch 1". Requires has_test(); throws Error unless
  /// overridden.
  [[nodiscard]] virtual Evaluation test(Workers& workers, const EvaluationOptions& options,
                                        std::string_view when);

  /// Tries the objective before training, without lasting effects. Called before the first step,
  /// once for each minibatch size that will occur: that of TrainOptions, and that of the last
  /// minibatch, which may have fewer samples (Remainder::carry). Throws Error.
  virtual void try_out(std::int64_t minibatch_size) { static_cast<void>(minibatch_size); }

  /// The largest number of minibatches of that size that an evaluator computes in one pass
  /// (Evaluator::evaluate_several()); 1 means one after the other. The trainer never passes more
  /// than kMostAtOnce, and only one if it needs each result separately (norms of minibatches,
  /// faults).
  [[nodiscard]] virtual std::int64_t minibatches_at_once(std::int64_t minibatch_size) const {
    static_cast<void>(minibatch_size);
    return 1;
  }
  static constexpr std::int64_t kMostAtOnce = 1024;

  /// True if evaluators write every value of Leaf::gradient, the 0 of the padding between
  /// parameters too, so that nobody has to clear it before.
  [[nodiscard]] virtual bool overwrites_gradients() const { return false; }

  /// Options of dynamic loss scaling, which half precision needs: steps whose gradient overflows
  /// are skipped. Empty if the loss is not scaled.
  [[nodiscard]] virtual std::optional<LossScaleOptions> loss_scale() const { return std::nullopt; }

  /// The bytes of a sample as an evaluator gathers it, and whether a BLAS multiplies matrices. Both
  /// serve to predict the memory needed.
  [[nodiscard]] virtual std::size_t sample_bytes() const { return 0; }
  [[nodiscard]] virtual bool uses_blas() const { return false; }
  /// The bytes that the objective allocates at the first step, such as a copy of its parameters.
  [[nodiscard]] virtual std::size_t step_bytes() const { return 0; }
};

/// An objective whose parameters are of type T: float or double.
template <class T>
class ObjectiveOf : public Objective {
 public:
  [[nodiscard]] ElementType type() const final { return element_type_of<T>(); }

  /// All parameters in training, one after the other, as trained() says; the padding between them
  /// is 0. They hold the initial values at first; steps change them.
  [[nodiscard]] virtual std::span<T> flat_parameters() = 0;
  /// The number of values that an evaluator writes besides the gradient.
  [[nodiscard]] virtual std::size_t averaged() const { return 0; }

  /// Makes an evaluator; each thread has its own.
  [[nodiscard]] virtual std::unique_ptr<Evaluator<T>> make_evaluator() = 0;

  /// Called before the minibatches of a step, and again before they are redone because a core died.
  virtual void begin_minibatches(Workers& workers) { static_cast<void>(workers); }
  /// Called after the minibatches of a step, whether or not they completed.
  virtual void end_minibatches() noexcept {}

  /// The bytes that the minibatches of a step produce besides leaves and that other hosts need,
  /// such as exact counts. The same for every step.
  [[nodiscard]] virtual std::size_t tally_bytes() const { return 0; }
  /// Writes the tally. Called after all minibatches of this host.
  virtual void put_tally(std::span<std::byte> tally) const { static_cast<void>(tally); }
  /// Adds the tally of another host. Called after put_tally(), in no particular order of hosts.
  virtual void add_tally(std::span<const std::byte> tally) { static_cast<void>(tally); }

  /// Returns in ascending order the indices in trained() of tensors that got no gradient from any
  /// minibatch of the step, judging by the sums of Leaf::averaged. They keep their values, and the
  /// optimizer keeps its state for them.
  [[nodiscard]] virtual std::vector<std::size_t> unreached(std::span<const T> sums) const {
    static_cast<void>(sums);
    return {};
  }
  /// Called when the step is applied, with the sums of Leaf::averaged over its minibatches.
  virtual void move_averages(std::span<const T> sums, std::int64_t minibatches) {
    static_cast<void>(sums), static_cast<void>(minibatches);
  }
};

/// A user's own function to be minimised: the mean over samples of something that depends on
/// parameters.
template <class T>
struct FunctionParts {
  /// The parameters at which training starts; at least one.
  std::vector<T> initial{};
  /// The number of samples, at least 1; a minibatch contains some of their indices, from 0.
  std::int64_t samples = 0;
  /// Returns the mean over these samples, and writes its derivatives by the parameters, which are 0
  /// before. Called by several threads at once; the result must depend on the arguments alone. An
  /// exception ends training as a TrainingError that names the place.
  std::function<double(std::span<const T> parameters, std::span<const std::int64_t> samples,
                       std::span<T> gradient)>
      value_and_gradient{};
  /// Returns the total weight of these samples, at least 0. If it is set, value_and_gradient()
  /// returns a sum over weights (Leaf::weight). Called in the same way.
  std::function<double(std::span<const std::int64_t> samples)> weight{};
  /// Evaluates the parameters after each epoch; optional. Called by the thread that trains.
  std::function<Evaluation(std::span<const T> parameters)> test{};
  /// A saved state identifies the function and its data by this text; a state with another one is
  /// refused.
  std::string fingerprint = "a function";
};

/// Makes an objective whose parameters are one array with the name "parameters". Throws Error for
/// parts that are missing or out of range.
///
/// T is float or double.
template <class T>
[[nodiscard]] std::unique_ptr<ObjectiveOf<T>> function_objective(FunctionParts<T> parts);

extern template std::unique_ptr<ObjectiveOf<float>> function_objective(FunctionParts<float>);
extern template std::unique_ptr<ObjectiveOf<double>> function_objective(FunctionParts<double>);

extern template class Evaluator<float>;
extern template class Evaluator<double>;
extern template class ObjectiveOf<float>;
extern template class ObjectiveOf<double>;

}  // namespace rubato
