// A DensePass gathers samples, keeps the outputs of all layers in rows padded to kRowStep values,
// and calls the kernels of the model, which are compiled for several instruction sets
// (kernels/dense_kernels.hpp). losses() replaces the outputs of the last layer by the derivatives
// of the loss, minibatch by minibatch, from which backward() then starts; outputs() must be read
// before. WeightPanels divides the packing of weights into parts that threads take one by one.
// evaluate() gives each thread a pass of its own and adds the results of batches of a fixed size in
// their order, so no bit depends on the number of threads.

#include "dense_pass.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numbers>
#include <vector>

#include "base/core/portable_math.hpp"

namespace rubato {

namespace {

std::size_t padded_row(std::ptrdiff_t columns) {
  return static_cast<std::size_t>((columns + dense::kRowStep - 1) / dense::kRowStep *
                                  dense::kRowStep);
}

// Copies rows of `columns` values.
template <class T>
void gather_rows(std::span<const T> all, std::int64_t columns,
                 std::span<const std::int64_t> samples, std::vector<T>& rows) {
  const auto length = static_cast<std::size_t>(columns);
  rows.resize(samples.size() * length);
  T* row = rows.data();
  for (const std::int64_t sample : samples) {
    row = std::copy_n(all.data() + static_cast<std::size_t>(sample) * length, length, row);
  }
}

template <class T>
std::span<const T> rows_of(std::span<const T> all, std::int64_t columns, std::int64_t first,
                           std::int64_t count) {
  if (all.empty()) return {};
  return all.subspan(static_cast<std::size_t>(first * columns),
                     static_cast<std::size_t>(count * columns));
}

}  // namespace

template <class T>
dense::Kernels<T> dense_kernels(InstructionSet set) {
  switch (set) {
    case InstructionSet::avx512:
      return dense::avx512_kernels<T>();
    case InstructionSet::avx2:
      return dense::avx2_kernels<T>();
    default:
      return dense::base_kernels<T>();
  }
}

template dense::Kernels<float> dense_kernels(InstructionSet set);
template dense::Kernels<double> dense_kernels(InstructionSet set);

template <class T>
void DensePass<T>::gather(const DenseDataset<T>& dataset, std::span<const std::int64_t> samples,
                          std::size_t minibatches) {
  begin(static_cast<std::int64_t>(samples.size()));
  minibatches_ = static_cast<std::ptrdiff_t>(minibatches);
  gather_rows(dataset.inputs(), dataset.features(), samples, gathered_inputs_);
  inputs_ = gathered_inputs_.data();
  if (dataset.is_classified()) {
    gather_rows(dataset.classes(), 1, samples, gathered_classes_);
  } else {
    gather_rows(dataset.targets(), dataset.outputs(), samples, gathered_targets_);
  }
  classes_ = gathered_classes_;
  targets_ = gathered_targets_;
}

template <class T>
void DensePass<T>::take(const DenseDataset<T>& dataset, std::int64_t first, std::int64_t count) {
  begin(count);
  inputs_ = rows_of(dataset.inputs(), dataset.features(), first, count).data();
  classes_ = rows_of(dataset.classes(), 1, first, count);
  targets_ = rows_of(dataset.targets(), dataset.outputs(), first, count);
}

template <class T>
void DensePass<T>::begin(std::int64_t samples) {
  samples_ = samples;
  minibatches_ = 1;
  if (samples <= room_) return;
  room_ = samples;
  if (packed_.size() == 0) packed_ = AlignedValues<T>(dense::kPackedValues);
  memory_.clear();
  outputs_.clear();
  std::size_t widest = 0;
  for (const dense::Layer& layer : model_.layers) {
    const std::size_t values = static_cast<std::size_t>(samples) * padded_row(layer.outputs);
    memory_.emplace_back(values);
    outputs_.push_back(memory_.back().data());
    widest = std::max(widest, values);
  }
  outputs_of_minibatch_ = outputs_;
  scratch_ = AlignedValues<T>(widest);
}

template <class T>
dense::Batch<T> DensePass<T>::batch() const {
  return {.layers = model_.layers.data(),
          .layer_count = static_cast<std::ptrdiff_t>(model_.layers.size()),
          .tanh = model_.activation == Activation::tanh,
          .parameters = model_.parameters,
          .panels = model_.panels.empty() ? nullptr : model_.panels.data(),
          .samples = samples_,
          .minibatches = minibatches_,
          .inputs = inputs_,
          .outputs = outputs_.data(),
          .scratch = scratch_.data(),
          .packed = packed_.data()};
}

template <class T>
void DensePass<T>::forward() {
  model_.kernels.forward(batch());
}

template <class T>
std::span<const T> DensePass<T>::outputs(std::int64_t sample) const {
  const std::ptrdiff_t columns = model_.layers.back().outputs;
  return {outputs_.back() + static_cast<std::size_t>(sample) * padded_row(columns),
          static_cast<std::size_t>(columns)};
}

template <class T>
void DensePass<T>::losses(std::span<double> losses) {
  dense::Batch<T> one = batch();
  one.samples /= minibatches_;
  one.minibatches = 1;
  one.outputs = outputs_of_minibatch_.data();
  const auto samples = static_cast<std::size_t>(one.samples);
  const std::ptrdiff_t columns = model_.layers.back().outputs;
  for (std::size_t m = 0; m < losses.size(); ++m) {
    outputs_of_minibatch_.back() = outputs_.back() + m * samples * padded_row(columns);
    losses[m] = classes_.empty()
                    ? model_.kernels.squared_error(
                          one, targets_.data() + m * samples * static_cast<std::size_t>(columns))
                    : model_.kernels.cross_entropy(one, classes_.data() + m * samples);
  }
}

template <class T>
void DensePass<T>::backward(T* gradient) {
  model_.kernels.backward(batch(), gradient);
}

template class DensePass<float>;
template class DensePass<double>;

namespace {

// Calls take(layer, backward) for every layer forward, and for all but the first backward.
template <class T, class Take>
void for_each_panel(const DenseModel<T>& model, const Take& take) {
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
    for (const bool backward : {false, true}) {
      if (!backward || layer > 0) take(layer, backward);
    }
  }
}

template <class T>
std::size_t values_of(const DenseModel<T>& model, std::size_t layer, bool backward) {
  return static_cast<std::size_t>(model.kernels.panel_values(model.layers[layer], backward));
}

}  // namespace

template <class T>
std::size_t WeightPanels<T>::bytes(const DenseModel<T>& model) {
  std::size_t values = 0;
  for_each_panel(model, [&](std::size_t layer, bool backward) {
    values += values_of(model, layer, backward);
  });
  return values * sizeof(T);
}

template <class T>
void WeightPanels<T>::allocate(const DenseModel<T>& model) {
  panels_.resize(model.layers.size());
  for_each_panel(model, [&](std::size_t layer, bool backward) {
    T* const panel = memory_.emplace_back(values_of(model, layer, backward)).data();
    (backward ? panels_[layer].backward : panels_[layer].forward) = panel;
    const std::ptrdiff_t parts = model.kernels.panel_parts(model.layers[layer], backward);
    for (std::ptrdiff_t number = 0; number < parts; ++number) {
      parts_.push_back({.layer = layer, .backward = backward, .number = number});
    }
  });
}

template <class T>
void WeightPanels<T>::pack(const DenseModel<T>& model, Workers& workers) {
  if (panels_.empty()) allocate(model);
  workers.for_each(std::ssize(parts_), [&](std::int64_t i, int) {
    const auto& [layer, backward, number] = parts_[static_cast<std::size_t>(i)];
    const dense::Panels<T>& of_layer = panels_[layer];
    model.kernels.pack_panel(model.layers[layer], model.parameters, backward, number,
                             backward ? of_layer.backward : of_layer.forward);
  });
}

template class WeightPanels<float>;
template class WeightPanels<double>;

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
// lower classes. If any output is NaN, the class has the lowest rank that there is.
template <class T>
std::int64_t rank_of(std::int64_t target, std::span<const T> outputs) {
  const T own = outputs[static_cast<std::size_t>(target)];
  std::int64_t rank = 0;
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    if (std::isnan(outputs[j])) return std::numeric_limits<std::int64_t>::max();
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
    if (options.bytes_per_target > 0) {
      evaluation.bits_per_byte = evaluation.loss / std::numbers::ln2 / options.bytes_per_target;
    }
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
