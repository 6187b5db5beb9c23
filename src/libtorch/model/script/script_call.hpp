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

namespace rubato {

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

}  // namespace rubato
