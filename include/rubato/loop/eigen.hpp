#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rubato/loop/images.hpp>
#include <rubato/loop/model_options.hpp>
#include <rubato/loop/objective.hpp>

namespace rubato {

/// Numbers in memory that belongs to somebody else.
///
/// T is float or double.
template <class T>
class BorrowedRows {
 public:
  /// `owner` keeps the memory, whose numbers must not change; null if it outlives all copies of the
  /// data set.
  explicit BorrowedRows(std::span<const T> values, std::shared_ptr<const void> owner)
      : values_(values), owner_(std::move(owner)) {}

  [[nodiscard]] std::span<const T> values() const { return values_; }
  [[nodiscard]] const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  std::span<const T> values_;
  std::shared_ptr<const void> owner_;
};

/// Samples as rows of numbers, and for each of them a class or some real numbers.
///
/// A value: copies share the numbers, which never change. May be read by any number of threads.
///
/// T is float or double.
template <class T>
class DenseDataset {
 public:
  /// Holds the rows, all of one length and one after the other, and the class of each, from 0 to
  /// `class_count` - 1. Throws Error if the lengths do not fit together, if there is no sample, or
  /// if a class is out of range.
  [[nodiscard]] static DenseDataset classified(std::vector<T> inputs,
                                               std::vector<std::int64_t> classes,
                                               std::int64_t class_count);
  [[nodiscard]] static DenseDataset classified(BorrowedRows<T> inputs,
                                               std::vector<std::int64_t> classes,
                                               std::int64_t class_count);
  /// Holds the rows and `outputs` numbers for each of them, also row by row. Throws Error if the
  /// lengths do not fit together or if there is no sample.
  [[nodiscard]] static DenseDataset with_targets(std::vector<T> inputs, std::vector<T> targets,
                                                 std::int64_t outputs = 1);
  [[nodiscard]] static DenseDataset with_targets(BorrowedRows<T> inputs, std::vector<T> targets,
                                                 std::int64_t outputs = 1);

  [[nodiscard]] std::int64_t samples() const;
  /// The length of a row.
  [[nodiscard]] std::int64_t features() const;
  /// The number of classes, or of real numbers for each sample.
  [[nodiscard]] std::int64_t outputs() const;
  [[nodiscard]] bool is_classified() const;

  /// All rows: [samples, features].
  [[nodiscard]] std::span<const T> inputs() const;
  /// The class of each sample; empty unless is_classified().
  [[nodiscard]] std::span<const std::int64_t> classes() const;
  /// The real targets: [samples, outputs]; empty if is_classified().
  [[nodiscard]] std::span<const T> targets() const;

  /// The SHA-256 of the whole data set, computed on the first call.
  [[nodiscard]] const std::string& fingerprint() const;

 private:
  struct Content;
  explicit DenseDataset(std::shared_ptr<const Content> content);

  std::shared_ptr<const Content> content_;
};

extern template class DenseDataset<float>;
extern template class DenseDataset<double>;

/// Returns one row for each image: its pixels, scaled to [0, 1], less the mean and divided by the
/// deviation. Values are computed in double and rounded to float, whatever T is, so they equal
/// those of the tensors that to_tensors() makes (rubato/libtorch/dataset.hpp).
///
/// T is float or double.
template <class T>
[[nodiscard]] DenseDataset<T> to_rows(const ImageSet& images, const PixelStatistics& statistics,
                                      std::int64_t class_count = 10);

extern template DenseDataset<float> to_rows(const ImageSet&, const PixelStatistics&, std::int64_t);
extern template DenseDataset<double> to_rows(const ImageSet&, const PixelStatistics&, std::int64_t);

template <class T>
struct DenseNetworkOptions {
  /// The widths of the hidden layers, beginning next to the inputs.
  std::vector<std::int64_t> hidden{};
  Activation activation = Activation::relu;
  /// The network is tested on this set after each epoch.
  std::optional<DenseDataset<T>> test{};
  /// Seed of the initial values.
  std::uint64_t seed = 42;
};

// Fully connected layers, x W^T + b, on the user's own data, with gradients in closed form. They do
// not need libtorch, and small networks train several times as fast as with it.
//
// The data determine the loss. For classes it is the cross entropy of the softmax of the outputs;
// for real targets the mean over samples and outputs of (output - target)^2. Both equal libtorch's
// cross_entropy and mse_loss. The initial values equal those of torch::nn::Linear after
// torch::manual_seed(seed), bit for bit. Parameters are named as in the built-in models
// (docs/models.md): "linear.weight" and "linear.bias" if there is one layer, and "linear1.weight",
// "linear1.bias", "linear2.weight", ... if there are several.
//
// The result depends on the machine only in whether its CPU has FMA: AVX2, AVX-512 and NEON give
// the same bits. An evaluator allocates nothing once it has seen its largest minibatch.

/// Makes one layer for classes. Throws Error if `train` has real targets, if `hidden` is not empty,
/// or if the test set does not fit the training set.
template <class T>
[[nodiscard]] std::unique_ptr<ObjectiveOf<T>> softmax_regression(
    DenseDataset<T> train, DenseNetworkOptions<T> options = {});

/// Makes one layer for real targets. Throws Error if `train` has classes, and otherwise as
/// softmax_regression() does.
template <class T>
[[nodiscard]] std::unique_ptr<ObjectiveOf<T>> least_squares(DenseDataset<T> train,
                                                            DenseNetworkOptions<T> options = {});

/// Makes hidden layers for classes or real targets:
///
///     auto network = rubato::multi_layer_perceptron(train, {.hidden = {128, 64}, .test = test});
///     rubato::Trainer trainer(std::move(network), trace, options);
///
/// Throws Error if `hidden` is empty or contains a width below 1, or if the test set does not fit
/// the training set.
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

/// Returns h_1 to h_dim. Throws Error for options out of range.
[[nodiscard]] std::vector<double> eigenvalues_of(const QuadraticOptions& options);

/// The loss of a minibatch is L(w) + sum of xi_i w_i, whose gradient is the noisy one; xi is drawn
/// from the minibatch's StreamKey. The test returns L(w), the exact expected loss. No data are
/// needed: only the number of samples matters. Throws Error for options out of range.
///
/// T is float or double.
template <class T>
[[nodiscard]] std::unique_ptr<ObjectiveOf<T>> noisy_quadratic(const QuadraticOptions& options);

extern template std::unique_ptr<ObjectiveOf<float>> noisy_quadratic(const QuadraticOptions&);
extern template std::unique_ptr<ObjectiveOf<double>> noisy_quadratic(const QuadraticOptions&);

}  // namespace rubato
