#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/core/index.hpp>
#include <rubato/plan/stream_key.hpp>
#include <rubato/runtime/workers.hpp>
#include <rubato/scaling/loss_scaler.hpp>
#include <rubato/state/named_array.hpp>
#include <rubato/train/evaluator_progress.hpp>
#include <rubato/train/records.hpp>
#include <rubato/train/trained_array.hpp>

namespace rubato {

/// Some samples of the training data, whose mean loss is wanted with its gradient.
struct Minibatch {
  /// From 0 to Objective::samples() - 1, in the order of the epoch: as many as
  /// TrainOptions::minibatch_size says, but for the last minibatch of a training with
  /// Remainder::carry, which may have fewer. One may be there twice: with Remainder::carry at the
  /// end of an epoch and at the beginning of the next, and where TrainOptions::sampler says so.
  std::span<const std::int64_t> samples;
  /// What random numbers belong to that are drawn for it.
  StreamKey stream{};
  /// Whether it is the first of its step.
  bool first_of_step = false;
  /// The core that computes it, and which one of its minibatches in the step it is, from 0. What
  /// depends on them is not the same for every number of cores (Objective::depends_on_cores()).
  CoreRank core{};
  std::int64_t substep = 0;
  /// What the loss is multiplied by before it is differentiated, and the gradient divided by
  /// afterwards; not 1 only where Objective::loss_scale() asks for it.
  double loss_scale = 1;
};

/// Where an evaluator writes what it comes to. All values are 0 at first.
template <class T>
struct Leaf {
  /// Laid out as ObjectiveOf::flat_parameters().
  std::span<T> gradient;
  /// ObjectiveOf::averaged() values: they are summed over the minibatches of the step.
  std::span<T> averaged;
  /// Small numbers: leaves with the same one lie in the same memory, so that what is made for one
  /// may be kept for the next.
  std::int64_t buffer = 0;
};

/// Computes minibatches, one after the other. Used by one thread at a time, not always by the same.
template <class T>
class Evaluator {
 public:
  Evaluator() = default;
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;
  virtual ~Evaluator() = default;

  /// The mean loss of the samples, with its gradient in `leaf`. A function of the minibatch and the
  /// objective's state at the beginning of the step, and of nothing else: that is what the same
  /// bits for every number of threads rest on. It tells `progress` what it enters
  /// (EvaluatorProgress::enter()). An exception ends training, with its place.
  virtual double evaluate(const Minibatch& minibatch, const Leaf<T>& leaf,
                          EvaluatorProgress& progress) = 0;
};

struct EvaluationOptions {
  /// Evaluation::top_k_accuracy for so many outputs; more than there are classes are all of them, 0
  /// is none.
  std::int64_t top_k = 0;
  /// Evaluation::mse and perplexity.
  bool mse = false;
  bool perplexity = false;
};

/// What is trained: a function of parameters, the mean over samples of a loss, that can be
/// evaluated on any minibatch of them. The trainer knows nothing else of models and data, and an
/// objective nothing of cores, traces and rules. Objectives derive from ObjectiveOf.
class Objective {
 public:
  Objective() = default;
  Objective(const Objective&) = delete;
  Objective& operator=(const Objective&) = delete;
  virtual ~Objective() = default;

  /// Of the parameters in training: f32 or f64.
  [[nodiscard]] virtual ElementType type() const = 0;
  /// Samples to train on, at least 1.
  [[nodiscard]] virtual std::int64_t samples() const = 0;

  /// The parameters in training, in the order in which they lie in the flat array.
  [[nodiscard]] virtual const std::vector<TrainedArray>& trained() const = 0;
  /// All parameters, trained or not, and whatever else a step changes: what a state keeps of the
  /// model, and a report shows. In place: they change as training goes on.
  [[nodiscard]] virtual const std::vector<NamedArray>& parameters() const = 0;
  [[nodiscard]] virtual const std::vector<NamedArray>& buffers() const;

  /// What its results depend on besides data and parameters, as lines "name = value": a state is
  /// bound to it.
  [[nodiscard]] virtual std::string configuration() const { return {}; }
  /// What a state knows the data by: data with the same text are the same.
  [[nodiscard]] virtual std::string fingerprint() const = 0;
  [[nodiscard]] virtual std::string test_fingerprint() const { return {}; }

  /// Why its results depend on which core computes what, for people; empty where they do not. Such
  /// an objective is trained only where TrainOptions::exact is false.
  [[nodiscard]] virtual std::string depends_on_cores() const { return {}; }

  /// Why several hosts cannot train it (TrainOptions::hosts), for people; empty where they can,
  /// that is, where a step leaves nothing behind but what evaluators write into leaves, and a tally
  /// (ObjectiveOf::tally_bytes()).
  [[nodiscard]] virtual std::string needs_one_host() const { return {}; }

  /// Whether there is something to test it on.
  [[nodiscard]] virtual bool has_test() const { return false; }
  /// The test, on all threads; the same bits for every number of them. `when` says when it is, for
  /// errors: " after epoch 1". Only where has_test(); throws Error unless it is overridden.
  [[nodiscard]] virtual Evaluation test(Workers& workers, const EvaluationOptions& options,
                                        std::string_view when);

  /// Finds what cannot work before anything is trained, without a trace. Called before the first
  /// step, once for each size of the minibatches that there will be: of TrainOptions, and of the
  /// last one, which may have fewer samples (Remainder::carry). Throws Error.
  virtual void try_out(std::int64_t minibatch_size) { static_cast<void>(minibatch_size); }

  /// Asks for a loss scale that adapts itself, as half precision needs it: steps whose gradient
  /// overflows are then skipped.
  [[nodiscard]] virtual std::optional<LossScaleOptions> loss_scale() const { return std::nullopt; }

  /// Bytes of a sample as an evaluator gathers it, and whether it multiplies matrices by a BLAS: to
  /// say beforehand what memory is needed.
  [[nodiscard]] virtual std::size_t sample_bytes() const { return 0; }
  [[nodiscard]] virtual bool uses_blas() const { return false; }
  /// And bytes that it takes for itself when the first step begins: a copy of its parameters, say.
  [[nodiscard]] virtual std::size_t step_bytes() const { return 0; }
};

/// An objective whose parameters are of type T: float or double.
template <class T>
class ObjectiveOf : public Objective {
 public:
  [[nodiscard]] ElementType type() const final { return element_type_of<T>(); }

  /// All parameters in training, one after the other, as trained() says; whatever lies between them
  /// is 0. They hold the initial values at first; steps change them.
  [[nodiscard]] virtual std::span<T> flat_parameters() = 0;
  /// How many values an evaluator writes besides the gradient.
  [[nodiscard]] virtual std::size_t averaged() const { return 0; }

  /// One for each thread.
  [[nodiscard]] virtual std::unique_ptr<Evaluator<T>> make_evaluator() = 0;

  /// Before the minibatches of a step, and before they are done again because a core has died.
  virtual void begin_minibatches(Workers& workers) { static_cast<void>(workers); }
  /// After them, whether or not they came to an end.
  virtual void end_minibatches() noexcept {}

  /// Bytes of what the minibatches of a step leave behind besides leaves, to be told to other
  /// hosts: counts, say, that are to be exact. The same for every step.
  [[nodiscard]] virtual std::size_t tally_bytes() const { return 0; }
  /// Behind the minibatches that this host has computed, all of them: writes what they left.
  virtual void put_tally(std::span<std::byte> tally) const { static_cast<void>(tally); }
  /// After it: what those of another host left. In no particular order of hosts.
  virtual void add_tally(std::span<const std::byte> tally) { static_cast<void>(tally); }

  /// When the step is applied: the sums over its minibatches of Leaf::averaged.
  virtual void move_averages(std::span<const T> sums, std::int64_t minibatches) {
    static_cast<void>(sums), static_cast<void>(minibatches);
  }
};

extern template class ObjectiveOf<float>;
extern template class ObjectiveOf<double>;

}  // namespace rubato
