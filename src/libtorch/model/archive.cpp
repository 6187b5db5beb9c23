#include "archive.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <unordered_map>

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/csrc/jit/serialization/import.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/model.hpp>

#include "base/core/throw_error.hpp"
#include "loop/data/tensors/zip_archive.hpp"
#include "script.hpp"

namespace rubato {

at::Tensor with_its_own_bytes(const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach();
  const bool dense = values.layout() == at::kStrided && values.is_contiguous() &&
                     values.numel() > 0 && !values.is_quantized() && !values.is_conj() &&
                     !values.is_neg();
  if (!dense) return values.clone();
  return at::from_blob(values.data_ptr(), values.sizes(), values.options());
}

namespace {

std::string first_line(const std::exception& error) {
  const auto* const of_libtorch = dynamic_cast<const c10::Error*>(&error);
  const std::string text =
      of_libtorch != nullptr ? of_libtorch->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

// Gives libtorch's reader the bytes of a file.
class BytesReader final : public caffe2::serialize::ReadAdapterInterface {
 public:
  explicit BytesReader(std::string_view bytes) : bytes_(bytes) {}

  std::size_t size() const override { return bytes_.size(); }
  std::size_t read(std::uint64_t begin, void* to, std::size_t size,
                   const char* /*what*/) const override {
    const std::string_view part =
        bytes_.substr(std::min<std::uint64_t>(begin, bytes_.size()), size);
    std::copy(part.begin(), part.end(), static_cast<char*>(to));
    return part.size();
  }

 private:
  std::string_view bytes_;
};

// False for a tensor without memory, as a module saved on the meta device has, or with too little
// of it, as after damage.
bool has_memory(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || !tensor.is_cpu()) return true;
  if (tensor.numel() == 0) return true;
  return tensor.has_storage() && tensor.data_ptr() != nullptr &&
         at::detail::computeStorageNbytes(
             tensor.sizes(), tensor.strides(), static_cast<std::size_t>(tensor.element_size()),
             static_cast<std::size_t>(tensor.storage_offset())) <= tensor.storage().nbytes();
}

// Checks attributes of any type before their values are read.
void require_memory(const torch::jit::Module& module) {
  for (const auto& named : module.named_attributes()) {
    if (named.value.isModule()) continue;
    named.value.visit([&named](const c10::IValue& value) {
      if (value.isTensor() && !has_memory(value.toTensor())) {
        throw_error("'{}' has no values, as on the meta device", named.name);
      }
      return false;
    });
  }
}

// Separates tensors that share memory, as script_factory() requires; the values stay the same.
void give_memory_of_their_own(const torch::jit::Module& module) {
  std::unordered_map<const void*, at::Tensor> seen;
  const auto separate = [&seen](at::Tensor tensor) {
    if (!tensor.defined() || !tensor.has_storage()) return;
    const auto [place, is_new] = seen.try_emplace(tensor.storage().unsafeGetStorageImpl(), tensor);
    if (!is_new && !place->second.is_same(tensor)) tensor.set_data(tensor.detach().clone());
  };
  for (const auto& named : module.named_parameters()) separate(named.value);
  for (const auto& named : module.named_buffers()) separate(named.value);
}

}  // namespace

torch::jit::Module read_script(std::string_view bytes, const std::string& source) {
  constexpr std::string_view kAccepted =
      "what torch.jit.script() or torch.jit.trace() made, written by its save()";
  const std::string unreadable = fmt::format("{}: cannot be read as TorchScript", source);
  // libtorch's reader checks no checksum, and trusts sizes that damage may have changed.
  require_intact(zip_directory(bytes, unreadable, kAccepted), unreadable, kAccepted);
  try {
    torch::jit::Module module = torch::jit::load(std::make_shared<BytesReader>(bytes), at::kCPU);
    require_memory(module);
    give_memory_of_their_own(module);
    return module;
  } catch (const std::exception& error) {
    throw_error("{}: {}\naccepted: {}", unreadable, first_line(error), kAccepted);
  }
}

std::string script_bytes(const torch::jit::Module& module, std::span<const NamedTensor> parameters,
                         std::span<const NamedTensor> buffers) {
  std::string bytes;
  stream_script(module, parameters, buffers, [&bytes](std::string_view next) { bytes += next; });
  return bytes;
}

void stream_script(const torch::jit::Module& module, std::span<const NamedTensor> parameters,
                   std::span<const NamedTensor> buffers, const ByteSink& sink) {
  std::unordered_map<std::string, at::Tensor> values;
  for (const auto tensors : {parameters, buffers}) {
    for (const NamedTensor& named : tensors) values[named.name] = named.tensor;
  }
  TensorsOfCopy tensors;
  const auto give = [&](const std::string& name, const at::Tensor& tensor) {
    if (const auto value = values.find(name); value != values.end()) {
      tensors.give(tensor, with_its_own_bytes(value->second));
    }
  };
  for (const auto& named : module.named_parameters()) give(named.name, named.value);
  for (const auto& named : module.named_buffers()) give(named.name, named.value);
  ArchiveSink archive(sink);
  torch::jit::ExportModule(tensors.copy_of(module), archive.function());
  archive.rethrow();
}

}  // namespace rubato
