#include "tensors_of_copy.hpp"

#include <utility>

namespace rubato {

// With a version counter of its own: other threads may have others of the same memory.
void TensorsOfCopy::give(const at::Tensor& tensor, const at::Tensor& other) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  at::Tensor given = other.variable_data();
  given.requires_grad_(tensor.requires_grad());
  tensors_.emplace(tensor, given);
}

// Nothing but the copy has its tensors: a file names what others have as well, so that its bytes
// would be others.
torch::jit::Module TensorsOfCopy::copy_of(const torch::jit::Module& module) {
  auto tensors = std::exchange(tensors_, {});
  return torch::jit::Module(module._ivalue()->deepcopy(tensors));
}

}  // namespace rubato
