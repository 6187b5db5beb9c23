#include "dense_pass.hpp"

#include <algorithm>

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

}  // namespace rubato
