#include "dense_evaluation.hpp"

#include <algorithm>
#include <vector>

#include "base/core/numbers/functions.hpp"

namespace rubato {

// This struct is outside the anonymous namespace because a function template's lambda uses it.
struct DenseBatchResult {
  double loss_sum = 0;
  std::int64_t correct = 0;
  std::int64_t in_top_k = 0;
};

namespace {

// Samples evaluated at a time: fixed, so that the sums do not depend on the threads.
constexpr std::int64_t kEvaluated = 250;

// Counts the outputs that rank above that of the class: those that are larger, and equal ones of
// lower classes.
template <class T>
std::int64_t rank_of(std::int64_t target, std::span<const T> outputs) {
  const T own = outputs[static_cast<std::size_t>(target)];
  std::int64_t rank = 0;
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    if (outputs[j] > own || (outputs[j] == own && static_cast<std::int64_t>(j) < target)) ++rank;
  }
  return rank;
}

template <class T>
DenseBatchResult evaluate_batch(DensePass<T>& pass, std::int64_t samples, std::int64_t top_k) {
  DenseBatchResult result;
  pass.forward();
  const std::span<const std::int64_t> classes = pass.classes();
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const std::int64_t rank = rank_of(classes[i], pass.outputs(static_cast<std::int64_t>(i)));
    if (rank == 0) ++result.correct;
    if (rank < top_k) ++result.in_top_k;
  }
  result.loss_sum = pass.loss() * static_cast<double>(samples);
  return result;
}

}  // namespace

template <class T>
Evaluation evaluate(const DenseModel<T>& model, const DenseDataset<T>& dataset, Workers& workers,
                    const EvaluationOptions& options) {
  const std::int64_t samples = dataset.samples();
  const std::int64_t batches = (samples + kEvaluated - 1) / kEvaluated;
  std::vector<DenseBatchResult> results(static_cast<std::size_t>(batches));
  std::vector<DensePass<T>> passes;
  passes.reserve(static_cast<std::size_t>(workers.threads()));
  for (int i = 0; i < workers.threads(); ++i) passes.emplace_back(model);
  workers.for_each(batches, [&](std::int64_t i, int thread) {
    DensePass<T>& pass = passes[static_cast<std::size_t>(thread)];
    const std::int64_t first = i * kEvaluated;
    const std::int64_t count = std::min(kEvaluated, samples - first);
    pass.take(dataset, first, count);
    results[static_cast<std::size_t>(i)] = evaluate_batch(pass, count, options.top_k);
  });

  DenseBatchResult sum;
  for (const DenseBatchResult& result : results) {
    sum.loss_sum += result.loss_sum;
    sum.correct += result.correct;
    sum.in_top_k += result.in_top_k;
  }
  const auto share = [samples](auto value) {
    return static_cast<double>(value) / static_cast<double>(samples);
  };
  Evaluation evaluation{.samples = samples, .loss = share(sum.loss_sum)};
  if (dataset.is_classified()) {
    evaluation.accuracy = share(sum.correct);
    if (options.top_k > 0) evaluation.top_k_accuracy = share(sum.in_top_k);
    if (options.perplexity) evaluation.perplexity = exact::exp(evaluation.loss);
  } else if (options.mse) {
    // The loss of real targets is the mean squared error.
    evaluation.mse = evaluation.loss;
  }
  return evaluation;
}

template Evaluation evaluate(const DenseModel<float>&, const DenseDataset<float>&, Workers&,
                             const EvaluationOptions&);
template Evaluation evaluate(const DenseModel<double>&, const DenseDataset<double>&, Workers&,
                             const EvaluationOptions&);

}  // namespace rubato
