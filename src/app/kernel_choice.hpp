#pragma once

#include <string>

#include <rubato/config/run_configuration.hpp>
#include <rubato/machine/kernels.hpp>
#include <rubato/state/state.hpp>
#include <rubato/torch/environment.hpp>
#include <rubato/train/observer.hpp>

namespace rubato::app {

/// Makes the process compute with the kernels of --kernels; may start the program again with
/// `argv`, see use_right_kernels(). Throws Error where portable ones are not to be had.
void use_kernels(char* const* argv, const RunConfiguration& configuration);

/// Throws Error when `in_use` are not what --kernels portable promises.
void require_portable(const KernelsInUse& in_use);

/// "OpenBLAS Haswell, ATen AVX2, oneDNN avx512_core".
[[nodiscard]] std::string kernels_text(const KernelsInUse& kernels);

/// To stdout, where the program does not compute as the libraries would by themselves.
void print_kernels();

/// What a checkpoint says of the kernels that its run computed with.
class KernelRecord final : public Observer {
 public:
  void save(State& state) const override;
};

/// A line for the user, where a run would go on from `checkpoint` with other kernels than it had;
/// empty where it would not.
[[nodiscard]] std::string kernel_difference(const State& checkpoint, const KernelsInUse& now);

}  // namespace rubato::app
