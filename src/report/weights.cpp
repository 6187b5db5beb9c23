#include <array>
#include <memory>

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <rubato/core/check.hpp>
#include <rubato/report/weights.hpp>

namespace rubato {

std::string sha256_of(std::span<const NamedTensor> tensors) {
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free);
  bool good = EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  for (const NamedTensor& named : tensors) {
    const at::Tensor values = named.tensor.detach().contiguous();
    good = good && EVP_DigestUpdate(context.get(), values.data_ptr(), values.nbytes()) == 1;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  good = good && EVP_DigestFinal_ex(context.get(), digest.data(), &size) == 1;
  RUBATO_CHECK(good, "SHA-256 of memory cannot fail");
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest.at(i));
  return text;
}

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
