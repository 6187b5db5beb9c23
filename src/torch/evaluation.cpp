#include "evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <rubato/train/training_error.hpp>

#include "checked_batch.hpp"
#include "operators/operators.hpp"

namespace rubato {

namespace {

// Samples evaluated at a time: fixed, so that the sums do not depend on the threads.
constexpr std::int64_t kBatch = 250;

struct BatchResult {
  double loss_sum = 0;
  std::int64_t correct = 0;
  std::int64_t in_top_k = 0;
  // Of real targets: (output - target)^2, and how many of them there are.
  double squares = 0;
  std::int64_t squared = 0;
};

// Where outputs are real numbers, as many as there are targets, whatever their shape.
void add_squares(const Tensors& outputs, const Tensors& targets, BatchResult& result) {
  if (outputs.size() != 1 || targets.size() != 1) return;
  const at::Tensor& target = targets.front();
  if (!target.is_floating_point() || outputs.front().numel() != target.numel()) return;
  const at::Tensor off = outputs.front().reshape(target.sizes()).to(at::kDouble) - target;
  result.squares = off.square().sum().item<double>();
  result.squared = target.numel();
}

bool is_classified(const Tensors& outputs, const Tensors& targets) {
  return outputs.size() == 1 && targets.size() == 1 && outputs.front().dim() == 2 &&
         targets.front().dim() == 1 && !targets.front().is_floating_point();
}

std::int64_t count_in_top(const at::Tensor& output, const at::Tensor& target, std::int64_t k) {
  const at::Tensor top = std::get<1>(output.topk(std::min(k, output.size(1)), 1));
  return top.eq(target.unsqueeze(1)).any(1).sum().item<std::int64_t>();
}

// Switches the replicas to evaluation for as long as it lives.
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

}  // namespace

Evaluation evaluate(ReplicaSet& replicas, const Loss& loss, const Dataset& dataset,
                    Workers& workers, const EvaluationOptions& options,
                    const OwnOperators& own_operators, std::string_view when) {
  const EvaluationMode mode(replicas);
  const std::int64_t samples = dataset.size();
  const std::int64_t batches = (samples + kBatch - 1) / kBatch;
  std::vector<BatchResult> results(static_cast<std::size_t>(batches));
  // Written by the first batch only.
  bool classified = false;
  const auto evaluate_batch = [&](std::int64_t i, int thread) {
    const at::NoGradGuard no_grad;
    const OperatorScope operators(own_operators);
    Replica& replica = replicas.pick(thread, i, workers.threads());
    replica.load_buffers();
    const std::int64_t begin = i * kBatch;
    const std::int64_t count = std::min(kBatch, samples - begin);
    const Batch batch = checked_batch(dataset.range(begin, count), count);
    const Tensors outputs = replica.forward(batch.inputs);
    BatchResult& result = results[static_cast<std::size_t>(i)];
    result.loss_sum = loss(outputs, batch.targets).item<double>() * static_cast<double>(count);
    if (options.mse) add_squares(outputs, batch.targets, result);
    if (is_classified(outputs, batch.targets)) {
      const at::Tensor& output = outputs.front();
      const at::Tensor& target = batch.targets.front();
      result.correct = output.argmax(1).eq(target).sum().item<std::int64_t>();
      if (options.top_k > 0) {
        result.in_top_k = count_in_top(output, target, options.top_k);
      }
      if (i == 0) classified = true;
    }
  };
  workers.for_each(batches, [&](std::int64_t i, int thread) {
    try {
      evaluate_batch(i, thread);
    } catch (...) {
      rethrow_with_place(Phase::evaluation, fmt::format("samples {} to {}{}", i * kBatch + 1,
                                                        std::min((i + 1) * kBatch, samples), when));
    }
  });

  Evaluation evaluation;
  evaluation.samples = samples;
  std::int64_t correct = 0;
  std::int64_t in_top_k = 0;
  double squares = 0;
  std::int64_t squared = 0;
  for (const BatchResult& result : results) {
    evaluation.loss += result.loss_sum;
    correct += result.correct;
    in_top_k += result.in_top_k;
    squares += result.squares;
    squared += result.squared;
  }
  evaluation.loss /= static_cast<double>(samples);
  const auto share = [samples](std::int64_t count) {
    return static_cast<double>(count) / static_cast<double>(samples);
  };
  if (classified) evaluation.accuracy = share(correct);
  if (classified && options.top_k > 0) evaluation.top_k_accuracy = share(in_top_k);
  if (classified && options.perplexity) evaluation.perplexity = std::exp(evaluation.loss);
  if (squared > 0) evaluation.mse = squares / static_cast<double>(squared);
  return evaluation;
}

}  // namespace rubato
