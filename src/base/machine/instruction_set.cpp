#include "instruction_set.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace rubato {

namespace {

InstructionSet by_cpuid() {
#ifdef __x86_64__
  // The compiler's built-in also asks which registers the operating system saves.
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx")) return InstructionSet::sse;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return InstructionSet::avx;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  return avx512 ? InstructionSet::avx512 : InstructionSet::avx2;
#elif defined(__aarch64__)
  return InstructionSet::neon;
#else
  return InstructionSet::sse;
#endif
}

}  // namespace

InstructionSet cpu_instruction_set() {
  static const InstructionSet set = by_cpuid();
  return set;
}

InstructionSet allowed_instruction_set() {
  const char* const variable = std::getenv("ATEN_CPU_CAPABILITY");
  const std::string_view value = variable == nullptr ? "" : variable;
  const InstructionSet own = cpu_instruction_set();
  if (value == "default") return std::min(own, InstructionSet::sse);
  return value == "avx2" ? std::min(own, InstructionSet::avx2) : own;
}

}  // namespace rubato
