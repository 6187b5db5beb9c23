#pragma once

#include <array>

#include <rubato/core/choice.hpp>

namespace rubato {

/// The vector instructions of x86-64 that numerical libraries have kernels for, each with those
/// before it. `sse` stands for what every x86-64 CPU has, and for every CPU of another kind.
enum class InstructionSet {
  sse,
  avx,
  /// AVX2 with FMA.
  avx2,
  /// AVX-512 with F, CD, BW, DQ and VL.
  avx512,
};

inline constexpr std::array<Choice<InstructionSet>, 4> kInstructionSets{
    {{InstructionSet::sse, "SSE"},
     {InstructionSet::avx, "AVX"},
     {InstructionSet::avx2, "AVX2 with FMA"},
     {InstructionSet::avx512, "AVX-512"}}};

/// The highest that this CPU has and the operating system lets programs use: by CPUID, not by the
/// model's name.
[[nodiscard]] InstructionSet cpu_instruction_set();

}  // namespace rubato
