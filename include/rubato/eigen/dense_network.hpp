#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <rubato/eigen/dense_dataset.hpp>
#include <rubato/recipe/perceptron_options.hpp>
#include <rubato/train/objective.hpp>

namespace rubato {

template <class T>
struct DenseNetworkOptions {
  /// The widths of the hidden layers, from the inputs on.
  std::vector<std::int64_t> hidden{};
  Activation activation = Activation::relu;
  /// What it is tested on after each epoch.
  std::optional<DenseDataset<T>> test{};
  /// Of the initial values.
  std::uint64_t seed = 42;
};

// Fully connected layers, x W^T + b, on data of one's own, with gradients in closed form: no
// libtorch is needed, and small networks train several times as fast as with it.
//
// The loss follows from the data. For classes it is the cross entropy of the softmax of the
// outputs; for real targets the mean over samples and outputs of (output - target)^2. Both are
// libtorch's, cross_entropy and mse_loss, and so are the initial values, bit for bit: those of
// torch::nn::Linear after torch::manual_seed(seed). Parameters have the names of the built-in
// models (docs/models.md): "linear.weight" and "linear.bias" where there is one layer, and
// "linear1.weight", "linear1.bias", "linear2.weight", ... where there are several.
//
// Bits depend on the instruction set (rubato/eigen/instruction_set.hpp), and on nothing else of the
// machine. An evaluator allocates nothing once it has seen its largest minibatch.

/// One layer on classes. Throws Error where `train` has real targets, `hidden` is not empty, or the
/// test set does not fit the training set.
template <class T>
[[nodiscard]] std::unique_ptr<ObjectiveOf<T>> softmax_regression(
    DenseDataset<T> train, DenseNetworkOptions<T> options = {});

/// One layer on real targets. Throws Error where `train` has classes, otherwise as
/// softmax_regression() does.
template <class T>
[[nodiscard]] std::unique_ptr<ObjectiveOf<T>> least_squares(DenseDataset<T> train,
                                                            DenseNetworkOptions<T> options = {});

/// Hidden layers on classes or on real targets:
///
///     auto network = rubato::multi_layer_perceptron(train, {.hidden = {128, 64}, .test = test});
///     rubato::Trainer trainer(std::move(network), trace, options);
///
/// Throws Error where `hidden` is empty or holds a width below 1, or the test set does not fit the
/// training set.
template <class T>
[[nodiscard]] std::unique_ptr<ObjectiveOf<T>> multi_layer_perceptron(
    DenseDataset<T> train, DenseNetworkOptions<T> options);

extern template std::unique_ptr<ObjectiveOf<float>> softmax_regression(DenseDataset<float>,
                                                                       DenseNetworkOptions<float>);
extern template std::unique_ptr<ObjectiveOf<double>> softmax_regression(
    DenseDataset<double>, DenseNetworkOptions<double>);
extern template std::unique_ptr<ObjectiveOf<float>> least_squares(DenseDataset<float>,
                                                                  DenseNetworkOptions<float>);
extern template std::unique_ptr<ObjectiveOf<double>> least_squares(DenseDataset<double>,
                                                                   DenseNetworkOptions<double>);
extern template std::unique_ptr<ObjectiveOf<float>> multi_layer_perceptron(
    DenseDataset<float>, DenseNetworkOptions<float>);
extern template std::unique_ptr<ObjectiveOf<double>> multi_layer_perceptron(
    DenseDataset<double>, DenseNetworkOptions<double>);

}  // namespace rubato
