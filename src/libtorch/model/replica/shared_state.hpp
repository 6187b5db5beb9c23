#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rubato/libtorch/model.hpp>

#include "buffer_treatment.hpp"
#include "layout.hpp"

namespace rubato {

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
