#include "tensors_of_copy.hpp"

#include <utility>

namespace rubato {

// The given tensor has a version counter of its own, as other threads may use other tensors of the
// same memory.
void TensorsOfCopy::give(const at::Tensor& tensor, const at::Tensor& other) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  at::Tensor given = other.variable_data();
  given.requires_grad_(tensor.requires_grad());
  tensors_.emplace(tensor, given);
}

// The replacements are moved out so that only the copy owns its tensors: a file stores shared
// tensors differently, so that its bytes would change.
torch::jit::Module TensorsOfCopy::copy_of(const torch::jit::Module& module) {
  auto tensors = std::exchange(tensors_, {});
  return torch::jit::Module(module._ivalue()->deepcopy(tensors));
}

}  // namespace rubato
