#pragma once

#include <span>
#include <string>
#include <string_view>

// Clang needs it before what follows.
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <rubato/core/byte_sink.hpp>
#include <rubato/model/model.hpp>

namespace rubato {

/// A TorchScript module, as torch::jit::load() gives it, whose forward() takes the inputs of a
/// batch as tensors, one by one, and returns a tensor, or a tuple, list or dictionary of tensors.
/// The running statistics of its modules with a `momentum` (a number or None), a `running_mean` and
/// a `running_var` combine as averages.
///
/// forward() is interpreted as it is written, in the calling thread: libtorch's profiling executor,
/// which computes a module otherwise once it has seen it run, is left out, so that bits do not
/// depend on how often a thread has run it; what the module forks runs at once. Tensor attributes
/// that forward() sets (`self.mean = ...`) are buffers like those that it changes in place.
///
/// Throws Error where forward() sets any other attribute, which no state would have.
[[nodiscard]] Model make_model(const torch::jit::Module& module);

/// A factory of copies of the module:
///
///     const auto factory = rubato::script_factory(torch::jit::load("net.pt"));
///
/// Throws Error where two of its tensors lie in one memory, without being one tensor.
[[nodiscard]] ModelFactory script_factory(const torch::jit::Module& module);

/// The module in the bytes of a TorchScript file (torch.jit.save), on the CPU; `source` stands for
/// the file in messages. Throws Error for what is none, or damaged.
///
/// A TorchScript file is a program, which runs when it is trained: docs/models.md says what becomes
/// of a file that is hostile.
[[nodiscard]] torch::jit::Module read_script(std::string_view bytes, const std::string& source);

/// A copy of the module with the values of `parameters` and `buffers`, by their names there, as the
/// bytes of a TorchScript file.
[[nodiscard]] std::string script_bytes(const torch::jit::Module& module,
                                       std::span<const NamedTensor> parameters,
                                       std::span<const NamedTensor> buffers);
/// Gives the same bytes to a sink. Dense tensors are not copied.
void stream_script(const torch::jit::Module& module, std::span<const NamedTensor> parameters,
                   std::span<const NamedTensor> buffers, const ByteSink& sink);

}  // namespace rubato
