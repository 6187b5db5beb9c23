#include "instruction_set.hpp"

#include <algorithm>

namespace rubato {

namespace {

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
