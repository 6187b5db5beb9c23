#pragma once

#include <string>

namespace rubato {

/// Lets libtorch and the BLAS compute on the calling thread only, in the whole process; from then
/// on parallelism comes from running several cores at a time. Does so at the first call and nothing
/// at later ones.
void use_one_intra_op_thread();

/// The versions a result depends on.
struct Versions {
  std::string rubato;
  std::string torch;
  std::string onetbb;
  /// As the BLAS calls itself; "unknown" for one that does not say.
  std::string blas;
};
[[nodiscard]] Versions versions();

/// The kernels that the libraries compute with in this process, as each calls them; empty where a
/// library does not say, or is not there.
struct KernelsInUse {
  /// The core: "Haswell".
  std::string openblas;
  /// "AVX2".
  std::string aten;
  /// "avx512_core".
  std::string onednn;

  friend bool operator==(const KernelsInUse&, const KernelsInUse&) = default;
};
[[nodiscard]] KernelsInUse kernels_in_use();

/// Whether oneDNN has the kernels that libtorch will ask it for under Precision::bf16. libtorch
/// asks wherever the CPU has AVX-512, also where ONEDNN_MAX_CPU_ISA keeps oneDNN from it; elsewhere
/// it computes bfloat16 itself.
[[nodiscard]] bool has_bf16_kernels();

/// Whether the process computes on a BLAS that is known to be fast. Debian's reference BLAS, which
/// is ten times slower, is not.
[[nodiscard]] bool has_fast_blas();

}  // namespace rubato
