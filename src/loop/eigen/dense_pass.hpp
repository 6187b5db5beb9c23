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
  /// Of each layer, where they are of these parameters; else empty.
  std::span<const dense::Panels<T>> panels{};
};

/// A dense network on some samples at a time, with memory of its own, which grows to what the most
/// samples need.
///
/// T is float or double.
template <class T>
class DensePass {
 public:
  explicit DensePass(const DenseModel<T>& model) : model_(model) {}

  /// Takes samples of a data set: copies of rows wherever they are, of one or several minibatches
  /// of one size, or rows that follow each other, which must outlive the pass. Of several
  /// minibatches no more than minibatches_at_once() says.
  void gather(const DenseDataset<T>& dataset, std::span<const std::int64_t> samples,
              std::size_t minibatches = 1);
  void take(const DenseDataset<T>& dataset, std::int64_t first, std::int64_t count);

  // With the samples taken, in this order.

  void forward();
  /// Of the sample with that place among those taken.
  [[nodiscard]] std::span<const T> outputs(std::int64_t sample) const;
  [[nodiscard]] std::span<const std::int64_t> classes() const { return classes_; }
  /// The mean over the samples of each minibatch, as many as there are minibatches. Uses up the
  /// outputs.
  void losses(std::span<double> losses);
  /// The same of one minibatch.
  double loss() {
    double loss = 0;
    losses({&loss, 1});
    return loss;
  }
  /// Adds the gradients of the losses, in the order of a SummationTree, to a gradient of 0.
  void backward(T* gradient);

  /// How many minibatches of a size it can take at once.
  [[nodiscard]] static std::int64_t minibatches_at_once(std::int64_t size) {
    return size > dense::kMinibatchAtOnce ? 1 : dense::kSamplesAtOnce / size;
  }

 private:
  // Makes room.
  void begin(std::int64_t samples);
  [[nodiscard]] dense::Batch<T> batch() const;

  const DenseModel<T>& model_;
  // What the samples are in the data set, or in what was gathered of it.
  std::ptrdiff_t samples_ = 0;
  std::ptrdiff_t minibatches_ = 1;
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
  // The same, of one minibatch for its loss.
  std::vector<T*> outputs_of_minibatch_;
  AlignedValues<T> scratch_;
  AlignedValues<T> packed_;
};

extern template class DensePass<float>;
extern template class DensePass<double>;

}  // namespace rubato
