#include <mutex>

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <oneapi/tbb/version.h>
#include <torch/version.h>

#include <rubato/train/environment.hpp>

namespace rubato {

namespace {

// A function of whichever BLAS the process was linked with, or null.
template <class Function>
Function* find_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

void use_one_intra_op_thread() {
  static std::once_flag once;
  std::call_once(once, [] {
    at::set_num_threads(1);
    // An OpenBLAS built on pthreads has threads of its own, about which libtorch knows nothing.
    if (auto* set_threads = find_function<void(int)>("openblas_set_num_threads")) set_threads(1);
  });
}

Versions versions() {
  Versions versions{.rubato = RUBATO_VERSION,
                    .torch = TORCH_VERSION,
                    .onetbb = TBB_runtime_version(),
                    .blas = "unknown"};
  if (auto* config = find_function<char*()>("openblas_get_config")) versions.blas = config();
  return versions;
}

bool has_fast_blas() {
  // OpenBLAS, BLIS, Intel MKL, by a function that each has and the reference BLAS has not.
  for (const char* name : {"openblas_get_config", "bli_info_get_version_str", "mkl_get_version"}) {
    if (dlsym(RTLD_DEFAULT, name) != nullptr) return true;
  }
  return false;
}

}  // namespace rubato
