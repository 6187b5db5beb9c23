#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <rubato/loop/eigen.hpp>

#include "loop/eigen/kernels/aligned_values.hpp"
#include "loop/eigen/kernels/dense_kernels.hpp"

namespace rubato {

/// What a dense network computes. Outlives whoever computes it.
template <class T>
struct DenseModel {
  std::vector<dense::Layer> layers;
  Activation activation = Activation::relu;
  /// In which Layer::weights and Layer::biases lie.
  const T* parameters = nullptr;
  dense::Kernels<T> kernels;
};

/// A dense network on some samples at a time, with memory of its own, which grows to what the most
/// samples need.
///
/// T is float or double.
template <class T>
class DensePass {
 public:
  explicit DensePass(const DenseModel<T>& model) : model_(model) {}

  /// Takes samples of a data set: copies of rows wherever they are, or rows that follow each other,
  /// which must outlive the pass.
  void gather(const DenseDataset<T>& dataset, std::span<const std::int64_t> samples);
  void take(const DenseDataset<T>& dataset, std::int64_t first, std::int64_t count);

  // With the samples taken, in this order.

  void forward();
  /// Of the sample with that place among those taken.
  [[nodiscard]] std::span<const T> outputs(std::int64_t sample) const;
  [[nodiscard]] std::span<const std::int64_t> classes() const { return classes_; }
  /// The mean over the samples. Uses up the outputs.
  double loss();
  /// Adds the gradient of the loss.
  void backward(T* gradient);

 private:
  // Makes room.
  void begin(std::int64_t samples);
  [[nodiscard]] dense::Batch<T> batch() const;

  const DenseModel<T>& model_;
  // What the samples are in the data set, or in what was gathered of it.
  std::ptrdiff_t samples_ = 0;
  const T* inputs_ = nullptr;
  std::span<const std::int64_t> classes_;
  std::span<const T> targets_;

  std::vector<T> gathered_inputs_;
  std::vector<std::int64_t> gathered_classes_;
  std::vector<T> gathered_targets_;
  std::ptrdiff_t room_ = 0;
  std::vector<AlignedValues<T>> memory_;
  // Of each layer, in memory_.
  std::vector<T*> outputs_;
  AlignedValues<T> scratch_;
  AlignedValues<T> packed_;
};

extern template class DensePass<float>;
extern template class DensePass<double>;

}  // namespace rubato
