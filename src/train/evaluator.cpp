#include "evaluator.hpp"

#include <algorithm>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

namespace rubato {

namespace {

// Samples evaluated at a time: fixed, so that the sums do not depend on the threads.
constexpr std::int64_t kBatch = 250;

struct BatchResult {
  double loss_sum = 0;
  std::int64_t correct = 0;
};

bool is_classified(const at::Tensor& output, const at::Tensor& target) {
  return output.dim() == 2 && target.dim() == 1 && !target.is_floating_point();
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

Evaluation evaluate(ReplicaSet& replicas, const Loss& loss, const TensorDataset& dataset,
                    Workers& workers) {
  const EvaluationMode mode(replicas);
  const std::int64_t samples = dataset.size();
  const std::int64_t batches = (samples + kBatch - 1) / kBatch;
  std::vector<BatchResult> results(static_cast<std::size_t>(batches));
  // Written by the first batch only.
  bool classified = false;
  workers.for_each(batches, [&](std::int64_t i, int thread) {
    const at::NoGradGuard no_grad;
    Replica& replica = replicas.of_thread(thread);
    replica.load_buffers();
    const std::int64_t begin = i * kBatch;
    const std::int64_t count = std::min(kBatch, samples - begin);
    const at::Tensor target = dataset.targets.narrow(0, begin, count);
    const at::Tensor output = replica.forward(dataset.inputs.narrow(0, begin, count));
    BatchResult& result = results[static_cast<std::size_t>(i)];
    result.loss_sum = loss(output, target).item<double>() * static_cast<double>(count);
    if (is_classified(output, target)) {
      result.correct = output.argmax(1).eq(target).sum().item<std::int64_t>();
      if (i == 0) classified = true;
    }
  });

  Evaluation evaluation;
  evaluation.samples = samples;
  std::int64_t correct = 0;
  for (const BatchResult& result : results) {
    evaluation.loss += result.loss_sum;
    correct += result.correct;
  }
  evaluation.loss /= static_cast<double>(samples);
  if (classified) evaluation.accuracy = static_cast<double>(correct) / static_cast<double>(samples);
  return evaluation;
}

}  // namespace rubato
