#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/model.hpp>

namespace rubato {

const at::Tensor& only_tensor(const Tensors& tensors, const char* what) {
  if (tensors.size() != 1) {
    throw Error(
        fmt::format("{} {}, where one tensor is taken; accepted: one, or a model or a loss that "
                    "takes all of them",
                    tensors.size(), what));
  }
  return tensors.front();
}

}  // namespace rubato
