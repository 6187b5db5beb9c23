#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <rubato/loop/eigen.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/loop/workers.hpp>

#include "dense_parameters.hpp"
#include "loop/eigen/kernels/dense_kernels.hpp"

namespace rubato {

/// The kernels for an instruction set, which the CPU must have.
template <class T>
[[nodiscard]] dense::Kernels<T> dense_kernels(InstructionSet set);

extern template dense::Kernels<float> dense_kernels(InstructionSet set);
extern template dense::Kernels<double> dense_kernels(InstructionSet set);

/// The function that a dense network computes. It must outlive the passes that use it.
template <class T>
struct DenseModel {
  std::vector<dense::Layer> layers;
  Activation activation = Activation::relu;
  /// The array in which Layer::weights and Layer::biases lie.
  const T* parameters = nullptr;
  dense::Kernels<T> kernels;
  /// The packed weights of each layer, if they were packed from these parameters; else empty.
  std::span<const dense::Panels<T>> panels{};
};

/// Computes a dense network for some samples at a time, in its own memory, which grows to the needs
/// of the largest number of samples.
///
/// T is float or double.
template <class T>
class DensePass {
 public:
  explicit DensePass(const DenseModel<T>& model) : model_(model) {}

  /// Selects samples of a data set. gather() copies rows from anywhere, for one or several
  /// minibatches of equal size, at most minibatches_at_once(); take() borrows consecutive rows,
  /// which must outlive the pass.
  void gather(const DenseDataset<T>& dataset, std::span<const std::int64_t> samples,
              std::size_t minibatches = 1);
  void take(const DenseDataset<T>& dataset, std::int64_t first, std::int64_t count);

  // The following functions compute on the selected samples, and are called in this order.

  void forward();
  /// The outputs of the sample with that place among those selected.
  [[nodiscard]] std::span<const T> outputs(std::int64_t sample) const;
  [[nodiscard]] std::span<const std::int64_t> classes() const { return classes_; }
  /// Computes the mean loss of each minibatch; `losses` has one element for each. Overwrites the
  /// outputs.
  void losses(std::span<double> losses);
  /// Computes the mean loss of a single minibatch.
  double loss() {
    double loss = 0;
    losses({&loss, 1});
    return loss;
  }
  /// Writes the sum of the gradients of the losses, in the order of a SummationTree, to `gradient`,
  /// except for its padding.
  void backward(T* gradient);

  /// The number of minibatches of that size that a pass can compute at once.
  [[nodiscard]] static std::int64_t minibatches_at_once(std::int64_t size) {
    return size > dense::kMinibatchAtOnce ? 1 : dense::kSamplesAtOnce / size;
  }

 private:
  // Enlarges the memory for that number of samples.
  void begin(std::int64_t samples);
  [[nodiscard]] dense::Batch<T> batch() const;

  const DenseModel<T>& model_;
  // The selected samples, in the data set or in the gathered copies.
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
  // The outputs of each layer, in memory_.
  std::vector<T*> outputs_;
  // The outputs of each layer for one minibatch, to compute its loss.
  std::vector<T*> outputs_of_minibatch_;
  AlignedValues<T> scratch_;
  AlignedValues<T> packed_;
};

extern template class DensePass<float>;
extern template class DensePass<double>;

/// The weights of a dense network in the layout of its products, packed once for all passes of a
/// step.
///
/// T is float or double.
template <class T>
class WeightPanels {
 public:
  /// Packs the model's current weights, with all threads; allocates on the first call.
  void pack(const DenseModel<T>& model, Workers& workers);
  /// The panels of each layer, as of the last pack().
  [[nodiscard]] std::span<const dense::Panels<T>> panels() const { return panels_; }

  /// The size of all panels.
  [[nodiscard]] static std::size_t bytes(const DenseModel<T>& model);

 private:
  // A part of a panel, which one thread packs at a time.
  struct Part {
    std::size_t layer = 0;
    bool backward = false;
    std::ptrdiff_t number = 0;
  };

  void allocate(const DenseModel<T>& model);

  std::vector<AlignedValues<T>> memory_{};
  std::vector<dense::Panels<T>> panels_{};
  std::vector<Part> parts_{};
};

extern template class WeightPanels<float>;
extern template class WeightPanels<double>;

/// Evaluates on all threads, to the same bits for every number of threads.
template <class T>
[[nodiscard]] Evaluation evaluate(const DenseModel<T>& model, const DenseDataset<T>& dataset,
                                  Workers& workers, const EvaluationOptions& options);

extern template Evaluation evaluate(const DenseModel<float>&, const DenseDataset<float>&, Workers&,
                                    const EvaluationOptions&);
extern template Evaluation evaluate(const DenseModel<double>&, const DenseDataset<double>&,
                                    Workers&, const EvaluationOptions&);

}  // namespace rubato
