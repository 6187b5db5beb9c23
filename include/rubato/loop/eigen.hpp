#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rubato/loop/images.hpp>
#include <rubato/loop/model_options.hpp>
#include <rubato/loop/objective.hpp>

namespace rubato {

/// Samples as rows of numbers, and for each of them a class or some real numbers.
///
/// A value: copies share the numbers, which never change. May be read by any number of threads.
///
/// T is float or double.
template <class T>
class DenseDataset {
 public:
  /// The rows, all of one length, one after the other, and the class of each, from 0 to
  /// `class_count` - 1. Throws Error for lengths that do not fit together, for no sample and for a
  /// class out of its range.
  [[nodiscard]] static DenseDataset classified(std::vector<T> inputs,
                                               std::vector<std::int64_t> classes,
                                               std::int64_t class_count);
  /// The rows, and `outputs` numbers for each of them, row by row as well. Throws Error for lengths
  /// that do not fit together and for no sample.
  [[nodiscard]] static DenseDataset with_targets(std::vector<T> inputs, std::vector<T> targets,
                                                 std::int64_t outputs = 1);

  [[nodiscard]] std::int64_t samples() const;
  /// Numbers in a row.
  [[nodiscard]] std::int64_t features() const;
  /// Classes, or real numbers for each sample.
  [[nodiscard]] std::int64_t outputs() const;
  [[nodiscard]] bool is_classified() const;

  /// [samples, features].
  [[nodiscard]] std::span<const T> inputs() const;
  /// One for each sample; empty unless is_classified().
  [[nodiscard]] std::span<const std::int64_t> classes() const;
  /// [samples, outputs]; empty if is_classified().
  [[nodiscard]] std::span<const T> targets() const;

  /// The SHA-256 of all of it, computed when it is first asked for.
  [[nodiscard]] const std::string& fingerprint() const;

 private:
  struct Content;
  explicit DenseDataset(std::shared_ptr<const Content> content);

  std::shared_ptr<const Content> content_;
};

extern template class DenseDataset<float>;
extern template class DenseDataset<double>;

/// One row for each image: its pixels, scaled to [0, 1], less the mean and divided by the
/// deviation. They are computed in double and rounded to float, whatever T is, so that they are the
/// values of the tensors that to_tensors() makes (rubato/libtorch/dataset.hpp).
///
/// T is float or double.
template <class T>
[[nodiscard]] DenseDataset<T> to_rows(const ImageSet& images, const PixelStatistics& statistics,
                                      std::int64_t class_count = 10);

extern template DenseDataset<float> to_rows(const ImageSet&, const PixelStatistics&, std::int64_t);
extern template DenseDataset<double> to_rows(const ImageSet&, const PixelStatistics&, std::int64_t);

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
// Bits depend on whether the CPU has FMA, and on nothing else of the machine: they are the same
// with AVX2, AVX-512 and NEON. An evaluator allocates nothing once it has seen its largest
// minibatch.

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

/// h_1 to h_dim. Throws Error for options out of their range.
[[nodiscard]] std::vector<double> eigenvalues_of(const QuadraticOptions& options);

/// The loss of a minibatch is L(w) + sum of xi_i w_i, whose gradient the noisy one is; xi is drawn
/// from the minibatch's StreamKey. The test's is L(w): the expected loss, exactly. No data is
/// needed: what the samples are plays no part but for their number. Throws Error for options out of
/// their range.
///
/// T is float or double.
template <class T>
[[nodiscard]] std::unique_ptr<ObjectiveOf<T>> noisy_quadratic(const QuadraticOptions& options);

extern template std::unique_ptr<ObjectiveOf<float>> noisy_quadratic(const QuadraticOptions&);
extern template std::unique_ptr<ObjectiveOf<double>> noisy_quadratic(const QuadraticOptions&);

}  // namespace rubato
