#include <vector>

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <rubato/libtorch/trainer.hpp>

#include "libtorch/model/script/archive_sink.hpp"

namespace rubato {

std::string pickled_weights(std::span<const NamedTensor> parameters,
                            std::span<const NamedTensor> buffers) {
  std::string bytes;
  stream_pickled_weights(parameters, buffers, [&bytes](std::string_view next) { bytes += next; });
  return bytes;
}

// The format is that of torch::jit::pickle_save(), which builds it in one piece, and of Python's
// torch.save().
void stream_pickled_weights(std::span<const NamedTensor> parameters,
                            std::span<const NamedTensor> buffers, const ByteSink& sink) {
  c10::Dict<std::string, at::Tensor> dictionary;
  for (const auto tensors : {parameters, buffers}) {
    for (const NamedTensor& named : tensors) {
      dictionary.insert(named.name, with_its_own_bytes(named.tensor));
    }
  }
  std::vector<char> pickle;
  // Tags of types are left out, because torch.load() takes them for code since PyTorch 2.6.
  torch::jit::Pickler pickler(
      [&pickle](const char* bytes, std::size_t size) {
        pickle.insert(pickle.end(), bytes, bytes + size);
      },
      nullptr, nullptr, nullptr, nullptr, false);
  pickler.protocol();
  pickler.pushIValue(dictionary);
  pickler.stop();
  ArchiveSink archive(sink);
  {
    caffe2::serialize::PyTorchStreamWriter writer(archive.function());
    const auto& tensors = pickler.tensorData();
    torch::jit::writeArchiveAndTensors("data", pickle.data(), pickle.size(),
                                       {tensors.begin(), tensors.end()}, writer);
    writer.writeEndOfFile();
  }
  archive.rethrow();
}

}  // namespace rubato
