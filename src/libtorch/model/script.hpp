#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

// Clang needs this header before the ones below.
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <rubato/libtorch/model.hpp>

#include "libtorch/versions.hpp"

namespace rubato {

/// Tensors that a copy of a TorchScript module takes from elsewhere; it clones the others.
class TensorsOfCopy {
 public:
  /// Makes the copy have `other` instead of `tensor`, which has to be the only tensor of the module
  /// in its memory. `other` requires a gradient if `tensor` does. Only the first replacement of a
  /// tensor counts.
  void give(const at::Tensor& tensor, const at::Tensor& other);

  /// Makes the copy, and forgets the replacements.
  [[nodiscard]] torch::jit::Module copy_of(const torch::jit::Module& module);

 private:
  libtorch::CopiedValues tensors_;
};

/// Calls of a TorchScript module's forward(): they give the same bits whoever makes them and
/// however often it has been called before.
///
/// Not to be called by two threads at once, unless forward() sets no attributes.
class ScriptCall {
 public:
  /// Throws Error if forward() sets an attribute that is not a tensor.
  explicit ScriptCall(const torch::jit::Module& module);

  /// Throws Error if forward() returns anything but a tensor, or a tuple, list or dictionary of
  /// tensors, whose values are taken in the order of insertion.
  [[nodiscard]] Tensors operator()(const Tensors& inputs);
  /// True if forward() sets tensors. If it does not, several threads may call it at once.
  [[nodiscard]] bool sets_attributes() const { return !set_.empty(); }

  /// True if forward() calls one of these operators ("aten::mse_loss").
  [[nodiscard]] bool calls(const std::set<std::string_view>& operators) const;

 private:
  // A tensor attribute that forward() replaces, with the tensor that the trainer knows.
  struct SetTensor {
    c10::intrusive_ptr<c10::ivalue::Object> owner;
    std::size_t slot = 0;
    std::string name{};
    at::Tensor tensor{};
  };
  class Lent;

  torch::jit::Module module_;
  std::vector<SetTensor> set_;
};

/// Returns, in phrases for people, what users may not expect of a module's mode: what stays in
/// evaluation mode, and what a file that was traced in one mode computes in the other. It is found
/// by computing outputs for `inputs` in both modes, which draws from libtorch's generator. Empty,
/// too, if the module cannot compute them.
[[nodiscard]] std::vector<std::string> mode_notes(const torch::jit::Module& module,
                                                  const Tensors& inputs);

/// A script_factory() whose instances share the parameters of the module, for a trainer, which
/// gives them memory of its own (Replica): the parameters of a large model are not copied for each
/// instance.
[[nodiscard]] ModelFactory sharing_script_factory(const torch::jit::Module& module);

/// Releases the values of the module's parameters, which keep their shapes.
void forget_parameters(const torch::jit::Module& module);

}  // namespace rubato
