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

/// Whether the process computes on a BLAS that is known to be fast. Debian's reference BLAS, which
/// is ten times slower, is not.
[[nodiscard]] bool has_fast_blas();

}  // namespace rubato
