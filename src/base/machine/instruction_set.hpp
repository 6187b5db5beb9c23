#pragma once

#include <array>

#include <rubato/base/parse.hpp>

namespace rubato {

/// Vector instruction sets for which numerical libraries have kernels. Each of x86-64 includes
/// those before it. ARM's comes first in the order because it includes none of x86-64's.
enum class InstructionSet {
  /// Present in every 64-bit ARM CPU; includes FMA.
  neon,
  /// Present in every x86-64 CPU; stands for CPUs of other kinds, too.
  sse,
  avx,
  /// AVX2 with FMA.
  avx2,
  /// AVX-512 with F, CD, BW, DQ and VL.
  avx512,
};

inline constexpr std::array<Choice<InstructionSet>, 5> kInstructionSets{
    {{InstructionSet::neon, "NEON"},
     {InstructionSet::sse, "SSE"},
     {InstructionSet::avx, "AVX"},
     {InstructionSet::avx2, "AVX2 with FMA"},
     {InstructionSet::avx512, "AVX-512"}}};

/// True if the set has FMA, so that kernels multiply and add in one rounding: required by --kernels
/// portable.
[[nodiscard]] constexpr bool has_fma(InstructionSet set) {
  return set == InstructionSet::neon || set >= InstructionSet::avx2;
}

/// The highest set that this CPU has and the operating system lets programs use, according to
/// CPUID, not to the model's name. All code that exists for several instruction sets uses it to
/// choose.
[[nodiscard]] InstructionSet cpu_instruction_set();

/// The highest set that this CPU has and ATEN_CPU_CAPABILITY (`default`, `avx2`, `avx512`), which
/// limits libtorch, allows rubato's kernels that obey it, too. Other values are ignored, as by
/// libtorch.
[[nodiscard]] InstructionSet allowed_instruction_set();

namespace detail {

#ifdef __x86_64__
template <class Body>
[[gnu::target("avx512f")]] decltype(auto) on_avx512(const Body& body) {
  return body();
}
// The target has no FMA, so that nothing can be fused.
template <class Body>
[[gnu::target("avx2")]] decltype(auto) on_avx2(const Body& body) {
  return body();
}
#endif

}  // namespace detail

/// Calls a loop compiled for the widest vectors of this CPU, and returns its result:
///
///     with_vectors([&]() __attribute__((always_inline)) { add_loop(into, from, n); });
///
/// Functions that are not inlined there use the instructions that every CPU has. The bits are the
/// same with all vectors, because nothing is fused (-ffp-contract=off) and no sum is reordered.
/// Kernels whose bits depend on the instruction set, or that are written for one, have their own
/// files (loop/eigen/kernels/dense_kernels.hpp, libtorch/operators/lane_convolution.hpp).
template <class Body>
decltype(auto) with_vectors(const Body& body) {
#ifdef __x86_64__
  const InstructionSet set = cpu_instruction_set();
  if (set == InstructionSet::avx512) return detail::on_avx512(body);
  if (set == InstructionSet::avx2) return detail::on_avx2(body);
#endif
  return body();
}

}  // namespace rubato
