#pragma once

#include <string>
#include <vector>

#include <rubato/libtorch/model.hpp>

namespace rubato::test {

inline std::vector<std::string> names(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> names;
  names.reserve(tensors.size());
  for (const NamedTensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

}  // namespace rubato::test
