#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/Functions.h>

namespace rubato::test {

inline at::Tensor tensor_of(const std::vector<double>& values) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kDouble);
  std::copy(values.begin(), values.end(), tensor.data_ptr<double>());
  return tensor;
}

}  // namespace rubato::test
