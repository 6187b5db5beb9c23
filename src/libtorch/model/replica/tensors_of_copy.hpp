#pragma once

#include <torch/csrc/jit/api/module.h>

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

}  // namespace rubato
