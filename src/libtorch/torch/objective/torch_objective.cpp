// TypedTorchObjective computes with parameters of one type, float or double, which
// make_torch_objective() takes from the model; TorchObjective has the parts that do not depend on
// it. A step begins with begin_minibatches(), which clears the changes of buffers and, in half
// precision, replaces the parameters by rounded ones. Evaluators, one for each replica, then
// compute the minibatches, end_minibatches() restores the master weights, and after the update
// move_averages() applies the changes of buffers. try_out() computes with a replica outside of the
// set and gradients of its own, so that nothing of a trial remains in the training.

#include "torch_objective.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "base/core/throw_error.hpp"
#include "base/machine/kernels.hpp"
#include "evaluation.hpp"
#include "libtorch/torch/guards.hpp"
#include "step_buffers.hpp"
#include "torch_evaluator.hpp"
#include "trial.hpp"

namespace rubato {

namespace {

void require_samples(const Dataset* dataset, std::string_view name) {
  if (dataset == nullptr) throw_error("{}: there is no data set", name);
  if (dataset->size() < 1) throw_error("{}: it holds no sample", name);
}

std::string text_of(const TorchOptions& options) {
  const auto name = choice_name(kPrecisions, options.precision);
  if (options.precision != Precision::fp16) return std::string(name);
  const LossScaleOptions& o = options.loss_scale;
  return fmt::format("{} scale {} growth {} backoff {} interval {} smallest {}", name, o.initial,
                     o.growth, o.backoff, o.interval, o.smallest);
}

// The values of a leaf behind the gradient are the changes of the floating-point buffers by forward
// and, for each parameter, the number of minibatches in which backward reached it.
template <class T>
class TypedTorchObjective final : public ObjectiveOf<T>, public TorchObjective {
 public:
  TypedTorchObjective(TorchParts parts, std::unique_ptr<ReplicaSet> replicas)
      : TorchObjective(std::move(parts), std::move(replicas)),
        trained_(trained_arrays(state())),
        parameter_arrays_(arrays_of(state().parameters())),
        buffer_arrays_(arrays_of(state().buffers())),
        buffers_(state(), parts_.options.buffers) {}

  std::int64_t samples() const override { return parts_.train->size(); }
  const std::vector<TrainedArray>& trained() const override { return trained_; }
  // A state that is taken while minibatches are computed (Trainer::state_in_step()) has the master
  // weights, too, and not the rounded ones.
  const std::vector<NamedArray>& parameters() const override {
    const bool rounded = master_weights_.has_rounded() && !master_arrays_.empty();
    return rounded ? master_arrays_ : parameter_arrays_;
  }
  const std::vector<NamedArray>& buffers() const override { return buffer_arrays_; }
  std::vector<BoundValue> bound_values() const override { return values(); }
  std::string depends_on_cores() const override {
    if (parts_.options.buffers == BufferUse::combined) return {};
    return "local buffers make the result depend on the number of cores";
  }
  std::string fingerprint() const override { return parts_.train->fingerprint(); }
  std::string test_fingerprint() const override { return test_->fingerprint(); }
  bool has_test() const override { return test_ != nullptr; }
  Evaluation test(Workers& workers, const EvaluationOptions& options,
                  std::string_view when) override {
    return evaluate(*test_, workers, options, when);
  }
  std::optional<LossScaleOptions> loss_scale() const override {
    if (parts_.options.precision != Precision::fp16) return std::nullopt;
    return parts_.options.loss_scale;
  }
  std::size_t sample_bytes() const override { return parts_.train->sample_bytes(); }
  bool uses_blas() const override { return loaded_openblas().has_value(); }
  // Memory of the master weights.
  std::size_t step_bytes() const override {
    return loss_scale() ? static_cast<std::size_t>(state().flat_parameters().numel()) * sizeof(T)
                        : 0;
  }

  std::span<T> flat_parameters() override {
    const at::Tensor& flat = state().flat_parameters();
    return {flat.data_ptr<T>(), static_cast<std::size_t>(flat.numel())};
  }
  std::size_t averaged() const override { return buffers_.size() + trained_.size(); }

  std::unique_ptr<Evaluator<T>> make_evaluator() override {
    return std::make_unique<TorchEvaluator<T>>(forward_backward(parts_.loss), replicas_->add(),
                                               buffers_, state().parameter_layout());
  }

  void begin_minibatches(Workers& workers) override {
    buffers_.begin();
    if (!loss_scale()) return;
    master_weights_.round(flat_parameters(), workers);
    // The master weights keep their address from the first step on.
    if (master_arrays_.empty()) master_arrays_ = master_weights_.in_place_of(parameter_arrays_);
  }
  void end_minibatches() noexcept override { master_weights_.restore(); }
  std::size_t tally_bytes() const override { return buffers_.tally_bytes(); }
  void put_tally(std::span<std::byte> tally) const override { buffers_.put_tally(tally); }
  void add_tally(std::span<const std::byte> tally) override { buffers_.add_tally(tally); }
  std::vector<std::size_t> unreached(std::span<const T> sums) const override {
    const std::span<const T> reached = sums.subspan(buffers_.size());
    std::vector<std::size_t> unreached;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      if (reached[i] == T{0}) unreached.push_back(i);
    }
    return unreached;
  }
  void move_averages(std::span<const T> sums, std::int64_t minibatches) override {
    buffers_.apply(sums.first(buffers_.size()), minibatches);
  }

  // Tries a separate instance, and restores libtorch's generator. Skipped if the factory returns
  // the only instance of a training on one thread again.
  void try_out(std::int64_t minibatch_size) override {
    const GeneratorKeeper keeper;
    std::optional<Replica> replica = replicas_->make_apart();
    if (!replica) return;
    try_training(*replica, minibatch_size);
    try_test(*replica, minibatch_size);
  }

 private:
  [[nodiscard]] ForwardBackward forward_backward(const Loss& loss) const {
    return {loss, *parts_.train, parts_.options};
  }

  void try_training(Replica& replica, std::int64_t minibatch_size) {
    EvaluatorProgress progress;
    const Loss tried = tried_loss(parts_.loss);
    try {
      const at::Tensor gradients = at::zeros_like(state().flat_parameters());
      const std::vector<at::Tensor> views = state().parameter_layout().views(gradients);
      if (loss_scale()) master_weights_.round(flat_parameters());
      for (const auto& samples : trial_minibatches(*parts_.train, minibatch_size)) {
        static_cast<void>(forward_backward(tried).run(
            replica,
            {.samples = samples,
             .stream = {.seed = parts_.seed},
             .loss_scale = loss_scale() ? parts_.options.loss_scale.initial : 1},
            views, progress));
      }
      master_weights_.restore();
    } catch (...) {
      master_weights_.restore();
      rethrow_with_place(progress.phase(),
                         place_of_trial(*parts_.train, minibatch_size, "training data"));
    }
  }

  std::vector<TrainedArray> trained_;
  std::vector<NamedArray> parameter_arrays_;
  std::vector<NamedArray> master_arrays_;
  std::vector<NamedArray> buffer_arrays_;
  StepBuffers<T> buffers_;
  MasterWeights<T> master_weights_;
};

}  // namespace

TorchObjective::TorchObjective(TorchParts parts, std::unique_ptr<ReplicaSet> replicas)
    : parts_(std::move(parts)), replicas_(std::move(replicas)) {}

void TorchObjective::set_test(std::shared_ptr<const Dataset> test, Loss loss) {
  require_samples(test.get(), "test data");
  test_ = std::move(test);
  test_loss_ = std::move(loss);
}

Evaluation TorchObjective::evaluate(const Dataset& dataset, Workers& workers,
                                    const EvaluationOptions& options, std::string_view when) {
  require_samples(&dataset, "data to evaluate on");
  return rubato::evaluate(*replicas_, test_loss(), dataset, workers, options,
                          parts_.options.operators, when);
}

Tensors TorchObjective::predict(const Dataset& dataset, Workers& workers) {
  require_samples(&dataset, "data to predict");
  return rubato::predict(*replicas_, dataset, workers, parts_.options.operators);
}

std::vector<BoundValue> TorchObjective::values() const {
  const TorchOptions& options = parts_.options;
  return {{"precision", text_of(options), OnFork::free},
          {"operators", to_string(options.operators), OnFork::free},
          {"augment", options.augment ? "yes" : "no", OnFork::free},
          {"buffers", std::string(choice_name(kBufferUses, options.buffers)), OnFork::free}};
}

void TorchObjective::try_test(Replica& replica, std::int64_t minibatch_size) const {
  if (!test_) return;
  std::vector<std::int64_t> sizes = evaluation_sizes(*test_);
  sizes.insert(sizes.begin(), minibatch_size);
  for (const std::int64_t size : sizes) {
    try_evaluation(replica, test_loss(), *test_, size, "test data");
  }
}

std::unique_ptr<Objective> make_torch_objective(TorchParts parts) {
  if (parts.options.precision == Precision::bf16 && !has_bf16_kernels()) {
    throw Error(
        "precision bf16: libtorch asks oneDNN for its bfloat16 kernels on this CPU, and "
        "ONEDNN_MAX_CPU_ISA keeps it from them; accepted: that variable not set, or precision "
        "full");
  }
  if (!parts.model)
    throw Error("a trainer without a model; accepted: a ModelFactory that makes it");
  if (!parts.loss)
    throw Error("a trainer without a loss; accepted: a function of output and target");
  require_samples(parts.train.get(), "training data");
  // The number of threads is set before the first worker starts.
  use_one_intra_op_thread();
  auto replicas = std::make_unique<ReplicaSet>(parts.model, parts.options.initializer, parts.seed);
  if (replicas->state().type() == at::kFloat) {
    return std::make_unique<TypedTorchObjective<float>>(std::move(parts), std::move(replicas));
  }
  if (parts.options.precision == Precision::fp16) {
    throw Error("precision fp16: the model's parameters are float64; accepted: with float32");
  }
  return std::make_unique<TypedTorchObjective<double>>(std::move(parts), std::move(replicas));
}

}  // namespace rubato
