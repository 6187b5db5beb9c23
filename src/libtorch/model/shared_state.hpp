#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rubato/libtorch/model.hpp>

namespace rubato {

/// Layout of tensors that lie one after the other in one flat buffer.
///
/// Every tensor begins at a multiple of 64 bytes (the padding between them is always zero), so a
/// tensor is aligned in the same way in every buffer and kernels take the same path.
class FlatLayout {
 public:
  FlatLayout() = default;
  /// All tensors must be of type `type`; their values are ignored.
  FlatLayout(std::span<const NamedTensor> tensors, at::ScalarType type);

  /// Number of elements in the flat buffer, including padding; a multiple of 64 bytes.
  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] at::ScalarType type() const { return type_; }
  /// End of each tensor, including the padding after it.
  [[nodiscard]] std::vector<std::size_t> ends() const;

  /// The tensors as views of a flat buffer that is a tensor: element i of the result has the shape
  /// of tensor i. `flat` is one-dimensional with at least size() elements from `offset` on.
  [[nodiscard]] std::vector<at::Tensor> views(const at::Tensor& flat,
                                              std::int64_t offset = 0) const;
  /// Views of memory that must outlive them.
  [[nodiscard]] std::vector<at::Tensor> views(void* memory) const;

 private:
  struct Segment {
    std::int64_t offset;
    std::vector<std::int64_t> shape;
  };
  std::vector<Segment> segments_;
  std::int64_t size_ = 0;
  at::ScalarType type_ = at::kFloat;
};

struct SortedTensors;

/// A BufferRule that has been checked, with the place of its counter.
struct BufferTreatment {
  BufferCombination combination = BufferCombination::mean;
  std::optional<double> momentum{};
  /// Index of the counter among SortedTensors::counters, followed by SortedTensors::buffers, as
  /// Module::to() makes counters floating-point, too.
  std::optional<std::size_t> counter{};
};

/// Treatments of the floating-point buffers and of the other ones, each in their order.
struct BufferTreatments {
  std::vector<BufferTreatment> buffers;
  std::vector<BufferTreatment> counters;
};

/// Treatments by the rules of `model` and, for buffers without a rule, by their type. Throws Error
/// for a rule that names no buffer of the model, or that its buffer cannot follow.
[[nodiscard]] BufferTreatments treatments_of(const Model& model, const SortedTensors& sorted);

/// Factor for the mean change of a running average when `minibatches` of a step, each of which has
/// updated it `updates` times from the same value, count as if they had come one after the other.
/// With r the average and s the mean of the statistics, the mean change is
///
///     (1 - (1 - m)^updates) (s - r), and becomes (1 - (1 - m)^(updates minibatches)) (s - r)
///
/// with momentum m; the factor is 1 for one minibatch.
[[nodiscard]] double factor_of_average(double momentum, std::int64_t minibatches,
                                       std::int64_t updates);
/// The same factor for a cumulative average that had been updated `before` times before the step.
[[nodiscard]] double factor_of_cumulative_average(std::int64_t before, std::int64_t minibatches,
                                                  std::int64_t updates);

/// The tensors of a model, sorted by their use in training, in the order of declaration and each
/// tensor once, however often the model names it (tied weights).
struct SortedTensors {
  std::vector<NamedTensor> trained;
  std::vector<NamedTensor> frozen;
  std::vector<NamedTensor> buffers;
  std::vector<NamedTensor> counters;
  /// All trained parameters and floating-point buffers have this type: at::kFloat or at::kDouble.
  at::ScalarType type = at::kFloat;
};
/// Throws Error, naming the tensor, if the model has no parameter to train, if parameters to train
/// or floating-point buffers are not all float32 or all float64, and if a tensor is not dense and
/// on the CPU.
[[nodiscard]] SortedTensors sort_tensors(const Model& model);

/// The only state of a model in training, which all replicas share.
///
///  - Trained parameters lie in one flat buffer.
///  - Frozen parameters (requires_grad false) are shared as they are and never written.
///  - Floating-point buffers (running statistics) lie in a second flat buffer.
///  - Other buffers (counters) are tensors of their own, contiguous.
class SharedState {
 public:
  /// Takes shapes and initial values from `model`. Throws Error as sort_tensors() does, and if a
  /// buffer rule cannot be followed.
  explicit SharedState(const Model& model);

  [[nodiscard]] at::ScalarType type() const { return parameter_layout_.type(); }
  [[nodiscard]] const FlatLayout& parameter_layout() const { return parameter_layout_; }
  [[nodiscard]] const FlatLayout& buffer_layout() const { return buffer_layout_; }

  /// One-dimensional, parameter_layout().size() elements.
  [[nodiscard]] const at::Tensor& flat_parameters() const { return flat_parameters_; }
  /// One-dimensional, buffer_layout().size() elements.
  [[nodiscard]] const at::Tensor& flat_buffers() const { return flat_buffers_; }
  [[nodiscard]] const std::vector<at::Tensor>& counters() const { return counters_; }
  /// How flat_buffers() and counters() combine in a step.
  [[nodiscard]] const BufferTreatments& treatments() const { return treatments_; }
  [[nodiscard]] const std::vector<at::Tensor>& frozen() const { return frozen_; }

  /// True if a replica has been made of the model already: its parameters are views of this state.
  [[nodiscard]] bool is_shared_by(const Model& model) const;

  /// The trained parameters, each once, as views of the flat buffer.
  [[nodiscard]] const std::vector<NamedTensor>& trained() const { return trained_; }
  /// All parameters, trained and frozen, in the order of their declaration; then all buffers. They
  /// are views, which change during training.
  [[nodiscard]] const std::vector<NamedTensor>& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<NamedTensor>& buffers() const { return buffers_; }

 private:
  FlatLayout parameter_layout_;
  FlatLayout buffer_layout_;
  at::Tensor flat_parameters_;
  at::Tensor flat_buffers_;
  std::vector<at::Tensor> counters_;
  BufferTreatments treatments_;
  std::vector<at::Tensor> frozen_;
  std::vector<NamedTensor> trained_;
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
};

}  // namespace rubato
