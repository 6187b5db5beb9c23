#pragma once

#include <torch/csrc/jit/api/module.h>

#include "libtorch/versions.hpp"

namespace rubato {

/// Which tensors a copy of a TorchScript module has in the place of the module's. Of the others it
/// has copies.
class TensorsOfCopy {
 public:
  /// `tensor` of the module, the only one in its memory, becomes `other`, which requires a gradient
  /// where `tensor` does. The first one that is given counts.
  void give(const at::Tensor& tensor, const at::Tensor& other);

  /// Gives them away.
  [[nodiscard]] torch::jit::Module copy_of(const torch::jit::Module& module);

 private:
  libtorch::CopiedValues tensors_;
};

}  // namespace rubato
