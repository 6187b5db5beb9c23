#include "instruction_set.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace rubato {

namespace {

// What the user allows.
InstructionSet allowed_instruction_set() {
  const char* const variable = std::getenv("ATEN_CPU_CAPABILITY");
  const std::string_view value = variable == nullptr ? "" : variable;
  if (value == "default") return InstructionSet::sse;
  if (value == "avx2") return InstructionSet::avx2;
  return InstructionSet::avx512;
}

// There are no kernels for AVX alone.
InstructionSet best_instruction_set() {
  const InstructionSet best = std::min(cpu_instruction_set(), allowed_instruction_set());
  return best == InstructionSet::avx ? InstructionSet::sse : best;
}

}  // namespace

InstructionSet dense_instruction_set() {
  static const InstructionSet set = best_instruction_set();
  return set;
}

}  // namespace rubato
