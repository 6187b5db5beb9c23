#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <rubato/torch/weights.hpp>

namespace rubato {

std::string pickled_weights(std::span<const NamedTensor> parameters,
                            std::span<const NamedTensor> buffers) {
  c10::Dict<std::string, at::Tensor> dictionary;
  for (const auto tensors : {parameters, buffers}) {
    for (const NamedTensor& named : tensors) {
      // A copy: the tensor is a view, and pickling would write all of the memory behind it.
      dictionary.insert(named.name, named.tensor.detach().clone());
    }
  }
  const std::vector<char> bytes = torch::jit::pickle_save(dictionary);
  return {bytes.begin(), bytes.end()};
}

}  // namespace rubato
