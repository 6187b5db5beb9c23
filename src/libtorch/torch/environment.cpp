#include <string_view>

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <oneapi/tbb/version.h>
#include <torch/version.h>

#include <rubato/libtorch/trainer.hpp>

#include "base/machine/kernels.hpp"

namespace rubato {

namespace {

// Finds a function of whichever BLAS the process was linked with, or null.
template <class Function>
Function* find_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

void use_one_intra_op_thread() {
  at::set_num_threads(1);
  // An OpenBLAS built on pthreads has threads of its own, which libtorch does not know.
  if (auto* set_threads = find_function<void(int)>("openblas_set_num_threads")) set_threads(1);
}

IntraOpThreads::IntraOpThreads() : of_libtorch_(at::get_num_threads()) {
  if (auto* get_threads = find_function<int()>("openblas_get_num_threads")) {
    of_blas_ = get_threads();
  }
}

IntraOpThreads::~IntraOpThreads() {
  at::set_num_threads(of_libtorch_);
  auto* set_threads = find_function<void(int)>("openblas_set_num_threads");
  if (of_blas_ > 0 && set_threads != nullptr) set_threads(of_blas_);
}

namespace {

// The capability in the line "  - CPU capability usage: AVX2" of libtorch's configuration; libtorch
// has no function for it.
std::string aten_capability() {
  constexpr std::string_view kKey = "CPU capability usage: ";
  const std::string text = at::show_config();
  const std::size_t found = text.find(kKey);
  if (found == std::string::npos) return {};
  const std::size_t begin = found + kKey.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

// The largest instruction set that oneDNN may use, by its public functions; libtorch does not ship
// their header.
std::string onednn_isa() {
  auto* const isa = find_function<int()>("dnnl_get_effective_cpu_isa");
  auto* const name = find_function<const char*(int)>("dnnl_cpu_isa2str");
  if (isa == nullptr || name == nullptr) return {};
  std::string_view text = name(isa());
  constexpr std::string_view kPrefix = "cpu_isa_";
  if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  return std::string(text);
}

}  // namespace

KernelsInUse kernels_in_use() {
  const auto openblas = loaded_openblas();
  return {.openblas = openblas ? openblas->core : std::string(),
          .aten = aten_capability(),
          .onednn = onednn_isa()};
}

bool has_bf16_kernels() {
  const std::string isa = onednn_isa();
  return cpu_instruction_set() < InstructionSet::avx512 || isa.empty() || isa.starts_with("avx512");
}

Versions versions() {
  Versions versions{.rubato = RUBATO_VERSION,
                    .torch = TORCH_VERSION,
                    .onetbb = TBB_runtime_version(),
                    .blas = "unknown"};
  if (const auto openblas = loaded_openblas()) versions.blas = openblas->config;
  return versions;
}

bool has_fast_blas() {
  // OpenBLAS, BLIS and Intel MKL are recognised by a function that the reference BLAS does not
  // have.
  for (const char* name : {"openblas_get_config", "bli_info_get_version_str", "mkl_get_version"}) {
    if (dlsym(RTLD_DEFAULT, name) != nullptr) return true;
  }
  return false;
}

}  // namespace rubato
