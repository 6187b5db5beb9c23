// A user's program that begins as the documentation says, on an OpenBLAS that does not know the
// CPU. Prints its arguments, what it computes with, and how it was started.
#include <cstdlib>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/machine.hpp>

// As OpenBLAS declares and behaves them.
extern "C" {
const char* openblas_get_corename();
const char* openblas_get_config();

const char* openblas_get_corename() {
  const char* const wanted = std::getenv("OPENBLAS_CORETYPE");
  return wanted != nullptr && *wanted != '\0' ? wanted : "Prescott";
}

const char* openblas_get_config() {
  const char* const config = std::getenv("PRETENDED_CONFIG");
  return config != nullptr ? config : "OpenBLAS 0.3.21 DYNAMIC_ARCH";
}
}

int main(int argc, char** argv) {
  using namespace rubato;
  bool portable = false;
  for (int i = 1; i < argc; ++i) portable = portable || std::string(argv[i]) == "--portable";
  try {
    use_right_kernels(argv, portable ? Kernels::portable : Kernels::native);
  } catch (const Error& error) {
    fmt::print("{}\n", error.what());
    return 2;
  }
  for (int i = 1; i < argc; ++i) fmt::print("<{}>", argv[i]);
  fmt::print(" on {}", openblas_get_corename());
  for (const char* name : {"ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "OPENBLAS_CORETYPE"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr) fmt::print(" {}={}", name, value);
  }
  fmt::print("\n");
  if (const auto start = kernel_start()) fmt::print("{}\n", describe(*start));
}
