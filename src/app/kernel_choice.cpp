#include "app/kernel_choice.hpp"

#include <string_view>

#include <fmt/format.h>

#include <rubato/core/error.hpp>

#include "app/output.hpp"

namespace rubato::app {

namespace {

constexpr std::string_view kKernelsInUse = "run.kernels";

}  // namespace

void use_kernels(char* const* argv, const RunConfiguration& configuration) {
  use_right_kernels(argv, configuration.kernels);
  if (configuration.kernels == Kernels::portable) require_portable(kernels_in_use());
}

void require_portable(const KernelsInUse& in_use) {
  const KernelsInUse wanted{.openblas = "Haswell", .aten = "AVX2", .onednn = "avx2"};
  if (in_use == wanted) return;
  throw Error(fmt::format(
      "--kernels portable: these libraries compute with {}, not with {}; accepted here: "
      "--kernels native",
      kernels_text(in_use), kernels_text(wanted)));
}

std::string kernels_text(const KernelsInUse& kernels) {
  const auto known = [](const std::string& name) -> std::string_view {
    return name.empty() ? "unknown" : std::string_view(name);
  };
  return fmt::format("OpenBLAS {}, ATen {}, oneDNN {}", known(kernels.openblas),
                     known(kernels.aten), known(kernels.onednn));
}

void print_kernels() {
  if (const auto start = kernel_start()) print_out(describe(*start) + "\n");
}

void KernelRecord::save(State& state) const {
  state.put_text(kKernelsInUse, kernels_text(kernels_in_use()));
}

std::string kernel_difference(const State& checkpoint, const KernelsInUse& now) {
  if (!checkpoint.has_text(kKernelsInUse)) return {};
  const std::string& before = checkpoint.text(kKernelsInUse);
  if (before == kernels_text(now)) return {};
  return fmt::format(
      "the run was computed with {}\nand goes on with {}: its bits may differ from those of a run "
      "that was not interrupted (--kernels portable keeps them)",
      before, kernels_text(now));
}

}  // namespace rubato::app
