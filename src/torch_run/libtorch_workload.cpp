#include "torch_run/libtorch_workload.hpp"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>

#include <rubato/core/choice.hpp>
#include <rubato/torch/arrays.hpp>
#include <rubato/torch/environment.hpp>
#include <rubato/torch/weights.hpp>

#include "model/shared_state.hpp"

namespace rubato {

EngineFacts::Facts kernel_facts() {
  const KernelsInUse kernels = kernels_in_use();
  return {{"OpenBLAS", kernels.openblas}, {"ATen", kernels.aten}, {"oneDNN", kernels.onednn}};
}

std::int64_t gradient_bytes_of(const ModelFactory& model) {
  // Its initial values are drawn, and are nobody's.
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const at::Tensor state = generator.get_state();
  const Model made = model();
  generator.set_state(state);
  std::int64_t bytes = 0;
  for (const NamedTensor& parameter : sort_tensors(made).trained) {
    bytes += static_cast<std::int64_t>(parameter.tensor.nbytes());
  }
  return bytes;
}

EngineFacts LibtorchWorkload::engine() const {
  const Versions of = versions();
  return {.engine = std::string(choice_name(kEngines, Engine::libtorch)),
          .kernels = kernel_facts(),
          .versions = {{"torch", of.torch}, {"onetbb", of.onetbb}, {"blas", of.blas}}};
}

std::string LibtorchWorkload::warning() const {
  if (has_fast_blas()) return {};
  return "the BLAS in use is not known to be fast and may make training ten times slower\n"
         "install an OpenBLAS (Debian: libopenblas0) or see update-alternatives";
}

std::string LibtorchWorkload::weights(std::span<const NamedArray> parameters,
                                      std::span<const NamedArray> buffers) const {
  return pickled_weights(tensors_of(parameters), tensors_of(buffers));
}

}  // namespace rubato
