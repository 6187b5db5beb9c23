#pragma once

#include <string>
#include <utility>
#include <vector>

#include "loop/eigen/dense_parameters.hpp"
#include "loop/eigen/kernels/dense_kernels.hpp"

namespace rubato::test {

/// The kernels for each instruction set that this CPU has, and its name.
template <class T>
std::vector<std::pair<std::string, dense::Kernels<T>>> all_kernels() {
  const InstructionSet cpu = cpu_instruction_set();
  std::vector<std::pair<std::string, dense::Kernels<T>>> all{
      {cpu == InstructionSet::neon ? "NEON" : "SSE", dense::base_kernels<T>()}};
  if (cpu >= InstructionSet::avx2) all.emplace_back("AVX2", dense::avx2_kernels<T>());
  if (cpu >= InstructionSet::avx512) all.emplace_back("AVX-512", dense::avx512_kernels<T>());
  return all;
}

}  // namespace rubato::test
