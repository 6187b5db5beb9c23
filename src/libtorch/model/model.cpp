#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

std::optional<double> LossValue::weight_number() const {
  if (!weight.defined()) return std::nullopt;
  if (weight.numel() != 1) {
    throw Error(
        fmt::format("the loss returns two tensors, the second of shape [{}]; accepted: one number, "
                    "the mean over the samples, or two, a sum and its weight",
                    fmt::join(weight.sizes(), ", ")));
  }
  const auto number = weight.item<double>();
  if (number >= 0 && std::isfinite(number)) return number;
  throw Error(
      fmt::format("the loss has a weight of {}; accepted: a finite one of at least 0", number));
}

}  // namespace rubato
