#pragma once

#include <string>

namespace rubato {

/// Lets libtorch and the BLAS compute on the calling thread only, in the whole process, but for
/// threads on which libtorch has computed before; from then on parallelism comes from running
/// several cores at a time.
void use_one_intra_op_thread();

/// Remembers the numbers of intra-op threads of libtorch and of an OpenBLAS, and sets them again
/// when it goes, on the same thread: for programs that use libtorch for themselves, beside a
/// training on another thread.
class IntraOpThreads {
 public:
  IntraOpThreads();
  ~IntraOpThreads();
  IntraOpThreads(const IntraOpThreads&) = delete;
  IntraOpThreads& operator=(const IntraOpThreads&) = delete;

 private:
  int of_libtorch_;
  // 0 where there is none.
  int of_blas_ = 0;
};

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
