#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/model/model.hpp>

namespace rubato {

const at::Tensor& only_tensor(const Tensors& tensors, const char* what) {
  if (tensors.size() != 1) {
    throw Error(fmt::format(
        "{} {} for a function of one tensor; accepted here: a function of rubato::Tensors",
        tensors.size(), what));
  }
  return tensors.front();
}

}  // namespace rubato
