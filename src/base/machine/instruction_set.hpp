#pragma once

#include <array>

#include <rubato/base/parse.hpp>

namespace rubato {

/// The vector instructions that numerical libraries have kernels for: of x86-64 each with those
/// before it. By its order that of ARM is below them, as it has none of theirs.
enum class InstructionSet {
  /// What every 64-bit ARM CPU has, FMA included.
  neon,
  /// What every x86-64 CPU has; stands for CPUs of other kinds, too.
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

/// Whether it has FMA, so that kernels multiply and add in one rounding: what --kernels portable
/// needs.
[[nodiscard]] constexpr bool has_fma(InstructionSet set) {
  return set == InstructionSet::neon || set >= InstructionSet::avx2;
}

/// The highest that this CPU has and the operating system lets programs use: by CPUID, not by the
/// model's name. All who have code for several instruction sets go by it.
[[nodiscard]] InstructionSet cpu_instruction_set();

/// The highest that ATEN_CPU_CAPABILITY (`default`, `avx2`, `avx512`), which holds libtorch to one,
/// lets kernels use that follow it, too; avx512 where it is not set or has another value, which
/// libtorch ignores as well.
[[nodiscard]] InstructionSet allowed_instruction_set();

namespace detail {

#ifdef __x86_64__
template <class Body>
[[gnu::target("avx512f")]] decltype(auto) on_avx512(const Body& body) {
  return body();
}
// Without FMA, so that nothing can be fused.
template <class Body>
[[gnu::target("avx2")]] decltype(auto) on_avx2(const Body& body) {
  return body();
}
#endif

}  // namespace detail

/// Calls a loop as it is compiled for the widest vectors of this CPU, and returns what it returns:
///
///     with_vectors([&]() __attribute__((always_inline)) { add_loop(into, from, n); });
///
/// What is not always inlined there is compiled for every CPU. The bits are the same with all
/// vectors, as nothing is fused (-ffp-contract=off) and no sum reordered. Kernels whose bits depend
/// on the instruction set, or that are written for one, are files of their own
/// (loop/eigen/kernels/dense_kernels.hpp, libtorch/operators/lane_convolution.hpp).
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
