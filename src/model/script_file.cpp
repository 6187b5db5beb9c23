#include <exception>
#include <sstream>
#include <unordered_map>

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/import.h>

#include <rubato/core/error.hpp>
#include <rubato/model/script.hpp>

#include "data/record_contents.hpp"
#include "data/zip_records.hpp"

namespace rubato {

namespace {

std::string first_line(const std::exception& error) {
  const auto* const of_libtorch = dynamic_cast<const c10::Error*>(&error);
  const std::string text =
      of_libtorch != nullptr ? of_libtorch->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

// As script_factory() needs them; the values stay.
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
  // libtorch's reader looks at no checksum, and believes the sizes that damage has made.
  require_intact(zip_directory(bytes, unreadable, kAccepted), unreadable, kAccepted);
  try {
    std::istringstream stream{std::string(bytes)};
    torch::jit::Module module = torch::jit::load(stream, at::kCPU);
    give_memory_of_their_own(module);
    return module;
  } catch (const std::exception& error) {
    throw Error(fmt::format("{}: {}\naccepted: {}", unreadable, first_line(error), kAccepted));
  }
}

std::string script_bytes(const torch::jit::Module& module, std::span<const NamedTensor> parameters,
                         std::span<const NamedTensor> buffers) {
  std::unordered_map<std::string, at::Tensor> values;
  for (const auto tensors : {parameters, buffers}) {
    for (const NamedTensor& named : tensors) values[named.name] = named.tensor;
  }
  const torch::jit::Module copy = module.deepcopy();
  // Tensors that others name, too, get their value twice.
  const auto set = [&values](const std::string& name, at::Tensor tensor) {
    const auto value = values.find(name);
    if (value == values.end()) return;
    const bool trained = tensor.requires_grad();
    tensor.detach_();
    tensor.set_data(value->second.detach().clone());
    tensor.requires_grad_(trained);
  };
  for (const auto& named : copy.named_parameters()) set(named.name, named.value);
  for (const auto& named : copy.named_buffers()) set(named.name, named.value);
  std::ostringstream stream;
  copy.save(stream);
  return stream.str();
}

}  // namespace rubato
