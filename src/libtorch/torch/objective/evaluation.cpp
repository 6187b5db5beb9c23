// Evaluation and prediction share one loop, for_each_batch(): the data set is cut into parts of 250
// samples, which the threads compute in any order, each into a slot of its own; the slots are then
// added or joined in the order of the samples, so the bits do not depend on the threads. Every part
// begins with the shared buffers of the model, and replicas are in evaluation mode meanwhile. A
// loss that is a weighted sum is averaged by its weights, any other by samples. Accuracies count
// only targets that are classes. ReplicaSet keeps the factory's first instance, which has the
// initial values, until it becomes the first replica.

#include "evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/objective.hpp>

#include "base/core/throw_error.hpp"
#include "libtorch/model/networks.hpp"
#include "libtorch/operators/operators.hpp"
#include "libtorch/torch/sample_tensors.hpp"
#include "trial.hpp"

namespace rubato {

namespace {

Model seeded_instance(const ModelFactory& factory, const InitializerOptions& initializer,
                      std::uint64_t seed) {
  at::manual_seed(seed);
  Model model = factory();
  initialize(model, initializer);
  return model;
}

}  // namespace

ReplicaSet::ReplicaSet(const ModelFactory& factory, const InitializerOptions& initializer,
                       std::uint64_t seed)
    : ReplicaSet(seeded_instance(factory, initializer, seed), factory, seed) {}

ReplicaSet::ReplicaSet(Model first, ModelFactory factory, std::uint64_t seed)
    : factory_(std::move(factory)), seed_(seed), first_(std::move(first)), state_(*first_) {}

Replica& ReplicaSet::add() {
  std::optional<Model> model = std::exchange(first_, std::nullopt);
  if (!model) {
    model = factory_();
    if (state_.is_shared_by(*model)) {
      throw Error(
          "the model factory gave the same instance twice; accepted: a new one at each call");
    }
  }
  replicas_.push_back(std::make_unique<Replica>(*std::move(model), state_));
  // Later numbers of libtorch's generator must not depend on the number of instances made.
  at::manual_seed(seed_);
  return *replicas_.back();
}

std::optional<Replica> ReplicaSet::make_apart() const {
  Model model = factory_();
  if (state_.is_shared_by(model)) return std::nullopt;
  return std::make_optional<Replica>(std::move(model), state_);
}

void ReplicaSet::set_training(bool training) {
  for (const auto& replica : replicas_) replica->set_training(training);
}

namespace {

// Number of samples that are evaluated at a time: fixed, so that the sums do not depend on the
// threads.
constexpr std::int64_t kBatch = 250;

std::int64_t batches_of(const Dataset& dataset) {
  return (dataset.size() + kBatch - 1) / kBatch;
}

}  // namespace

std::vector<std::int64_t> evaluation_sizes(const Dataset& dataset) {
  std::vector<std::int64_t> sizes;
  if (dataset.size() >= kBatch) sizes.push_back(kBatch);
  if (const std::int64_t rest = dataset.size() % kBatch; rest > 0) sizes.push_back(rest);
  return sizes;
}

namespace {

struct BatchResult {
  double loss_sum = 0;
  // Number of samples, or the sum of weights if the loss is a weighted sum.
  double weight = 0;
  // Number of targets that are classes.
  std::int64_t classified = 0;
  std::int64_t correct = 0;
  std::int64_t in_top_k = 0;
  // The targets are probabilities of classes.
  bool soft = false;
  // There is a single output for more than two classes, which it cannot tell apart.
  bool unclear = false;
  // Sum of (output - target)^2 over real targets, and their number.
  double squares = 0;
  std::int64_t squared = 0;
};

// Adds squared errors if the targets are real numbers, with one output for each, whatever their
// shapes.
void add_squares(const Tensors& outputs, const Tensors& targets, BatchResult& result) {
  if (outputs.size() != 1 || targets.size() != 1) return;
  const at::Tensor& target = targets.front();
  if (!target.is_floating_point() || outputs.front().numel() != target.numel()) return;
  const at::Tensor off = outputs.front().reshape(target.sizes()).to(at::kDouble) - target;
  result.squares = off.square().sum().item<double>();
  result.squared = target.numel();
}

// The scores of classes and the targets that count: negative ones are not classes, and a weighted
// loss leaves out targets without weight.
std::optional<ClassRows> class_scores_of(const Tensors& outputs, const Tensors& targets,
                                         const Loss& loss, bool weighted) {
  if (outputs.size() != 1 || targets.size() != 1) return std::nullopt;
  auto rows = class_scores(outputs.front(), targets.front(), loss.threshold());
  if (!rows && loss.takes_probabilities()) rows = most_probable(outputs.front(), targets.front());
  if (!rows) return rows;
  at::Tensor counted = rows->targets.ge(0);
  if (weighted) {
    for (const std::int64_t none : loss.classes_without_weight()) {
      counted.logical_and_(rows->targets.ne(none));
    }
  }
  if (counted.all().item<bool>()) return rows;
  const at::Tensor which = counted.nonzero().flatten();
  return ClassRows{.outputs = rows->outputs.index_select(0, which),
                   .targets = rows->targets.index_select(0, which)};
}

void add_loss(const LossValue& value, std::int64_t samples, BatchResult& result) {
  const std::optional<double> weight = value.weight_number();
  result.weight = weight.value_or(static_cast<double>(samples));
  // A batch without weight adds nothing.
  if (result.weight > 0) {
    result.loss_sum = value.loss.item<double>() * (weight ? 1 : result.weight);
  }
}

std::int64_t count_in_top(const at::Tensor& output, const at::Tensor& target, std::int64_t k) {
  const at::Tensor top = std::get<1>(output.topk(std::min(k, output.size(1)), 1));
  return top.eq(target.unsqueeze(1)).any(1).sum().item<std::int64_t>();
}

// Switches the replicas to evaluation while it lives.
class EvaluationMode {
 public:
  explicit EvaluationMode(ReplicaSet& replicas) : replicas_(replicas) {
    replicas_.set_training(false);
  }
  ~EvaluationMode() { replicas_.set_training(true); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  ReplicaSet& replicas_;
};

// Calls `work` with the number of each batch, its size, its targets and the outputs for it, on all
// threads.
template <class Work>
void for_each_batch(ReplicaSet& replicas, const Dataset& dataset, Workers& workers,
                    const ReplacedOperators& replaced_operators, std::string_view when,
                    const Work& work) {
  const EvaluationMode mode(replicas);
  const std::int64_t samples = dataset.size();
  const auto compute = [&](std::int64_t i, int thread) {
    const at::NoGradGuard no_grad;
    const OperatorScope operators(replaced_operators);
    Replica& replica = replicas.pick(thread, i, workers.threads());
    replica.load_buffers();
    const std::int64_t begin = i * kBatch;
    const std::int64_t count = std::min(kBatch, samples - begin);
    const Batch batch = checked_batch(dataset.range(begin, count), count);
    work(static_cast<std::size_t>(i), count, batch.targets, replica.forward(batch.inputs));
  };
  workers.for_each(batches_of(dataset), [&](std::int64_t i, int thread) {
    try {
      compute(i, thread);
    } catch (...) {
      rethrow_with_place(Phase::evaluation, fmt::format("samples {} to {}{}", i * kBatch + 1,
                                                        std::min((i + 1) * kBatch, samples), when));
    }
  });
}

void require_samples_first(const Tensors& outputs, std::int64_t count) {
  for (const at::Tensor& output : outputs) {
    if (output.layout() != at::kStrided || !output.is_cpu()) {
      throw Error(
          "the model gives outputs that are not dense and on the CPU; accepted: dense outputs on "
          "the CPU");
    }
    if (output.dim() > 0 && output.size(0) == count) continue;
    throw_error(
        "the model gives outputs of [{}] for {} samples; accepted: outputs with the samples in the "
        "first dimension",
        fmt::join(output.sizes(), ", "), count);
  }
}

}  // namespace

Evaluation evaluate(ReplicaSet& replicas, const Loss& loss, const Dataset& dataset,
                    Workers& workers, const EvaluationOptions& options,
                    const ReplacedOperators& replaced_operators, std::string_view when) {
  std::vector<BatchResult> results(static_cast<std::size_t>(batches_of(dataset)));
  const Loss tried = tried_loss(loss);
  for_each_batch(
      replicas, dataset, workers, replaced_operators, when,
      [&](std::size_t i, std::int64_t count, const Tensors& targets, const Tensors& outputs) {
        BatchResult& result = results[i];
        // An evaluation without a training has not tried the loss yet.
        const LossValue value = (i == 0 ? tried : loss).value(outputs, targets);
        add_loss(value, count, result);
        if (options.mse) add_squares(outputs, targets, result);
        const auto rows = class_scores_of(outputs, targets, loss, value.weight.defined());
        if (!rows || rows->targets.numel() == 0) return;
        const at::Tensor& target = targets.front();
        if (!target.is_floating_point() && target.numel() == outputs.front().numel()) {
          result.unclear = rows->targets.gt(1).any().item<bool>();
        }
        result.classified = rows->targets.numel();
        result.soft = target.is_floating_point();
        // NaN counts as the largest of all outputs in argmax(), topk() and amax(), and is never
        // correct.
        const at::Tensor expected = rows->targets.masked_fill(rows->outputs.amax(1).isnan(), -1);
        result.correct = rows->outputs.argmax(1).eq(expected).sum().item<std::int64_t>();
        if (options.top_k > 0) {
          result.in_top_k = count_in_top(rows->outputs, expected, options.top_k);
        }
      });

  Evaluation evaluation;
  evaluation.samples = dataset.size();
  BatchResult all;
  for (const BatchResult& result : results) {
    all.loss_sum += result.loss_sum;
    all.weight += result.weight;
    all.classified += result.classified;
    all.correct += result.correct;
    all.in_top_k += result.in_top_k;
    all.squares += result.squares;
    all.squared += result.squared;
    all.soft = all.soft || result.soft;
    all.unclear = all.unclear || result.unclear;
  }
  if (all.weight == 0) {
    throw_error(
        "nothing in the {} samples{} has weight in the loss; accepted: samples some of which have "
        "weight",
        evaluation.samples, when);
  }
  evaluation.loss = all.loss_sum / all.weight;
  if (all.squared > 0) evaluation.mse = all.squares / static_cast<double>(all.squared);
  if (all.classified == 0 || all.unclear) return evaluation;
  const auto share = [&all](std::int64_t count) {
    return static_cast<double>(count) / static_cast<double>(all.classified);
  };
  evaluation.accuracy = share(all.correct);
  if (options.top_k > 0) evaluation.top_k_accuracy = share(all.in_top_k);
  if (options.perplexity && !all.soft) evaluation.perplexity = std::exp(evaluation.loss);
  if (options.bytes_per_target > 0) {
    evaluation.bits_per_byte = evaluation.loss / std::numbers::ln2 / options.bytes_per_target;
  }
  return evaluation;
}

Tensors predict(ReplicaSet& replicas, const Dataset& dataset, Workers& workers,
                const ReplacedOperators& replaced_operators) {
  std::vector<Tensors> parts(static_cast<std::size_t>(batches_of(dataset)));
  for_each_batch(
      replicas, dataset, workers, replaced_operators, "",
      [&](std::size_t i, std::int64_t count, const Tensors& /*targets*/, const Tensors& outputs) {
        require_samples_first(outputs, count);
        parts[i] = outputs;
      });
  Tensors all;
  for (std::size_t output = 0; output < parts.front().size(); ++output) {
    std::vector<at::Tensor> of_batches;
    of_batches.reserve(parts.size());
    for (const Tensors& part : parts) {
      if (part.size() != parts.front().size()) {
        throw_error(
            "the model gives {} outputs for some samples and {} for others; accepted: the same "
            "number for all",
            parts.front().size(), part.size());
      }
      of_batches.push_back(part[output]);
    }
    try {
      all.push_back(at::cat(of_batches));
    } catch (...) {
      rethrow_with_place(Phase::evaluation, "all samples, whose outputs are put together");
    }
  }
  return all;
}

}  // namespace rubato
