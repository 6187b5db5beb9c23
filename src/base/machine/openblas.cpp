#include "openblas.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <vector>

#include <dlfcn.h>

namespace rubato {

namespace {

// OpenBLAS's names of cores for x86-64 (cpuid.S, driver/others/dynamic.c).
constexpr std::array<Choice<InstructionSet>, 27> kCores{{
    {InstructionSet::sse, "generic"},
    {InstructionSet::sse, "katmai"},
    {InstructionSet::sse, "coppermine"},
    {InstructionSet::sse, "northwood"},
    {InstructionSet::sse, "prescott"},
    {InstructionSet::sse, "banias"},
    {InstructionSet::sse, "atom"},
    {InstructionSet::sse, "core2"},
    {InstructionSet::sse, "penryn"},
    {InstructionSet::sse, "dunnington"},
    {InstructionSet::sse, "nehalem"},
    {InstructionSet::sse, "athlon"},
    {InstructionSet::sse, "opteron"},
    {InstructionSet::sse, "opteron_sse3"},
    {InstructionSet::sse, "barcelona"},
    {InstructionSet::sse, "bobcat"},
    {InstructionSet::sse, "nano"},
    {InstructionSet::avx, "sandybridge"},
    {InstructionSet::avx, "bulldozer"},
    {InstructionSet::avx, "piledriver"},
    {InstructionSet::avx, "steamroller"},
    {InstructionSet::avx2, "excavator"},
    {InstructionSet::avx2, "haswell"},
    {InstructionSet::avx2, "zen"},
    {InstructionSet::avx512, "skylakex"},
    {InstructionSet::avx512, "cooperlake"},
    {InstructionSet::avx512, "sapphirerapids"},
}};

// The result of an OpenBLAS function without arguments; empty if there is no such function.
std::string answer_of(const char* name) {
  auto* const function = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, name));
  if (function == nullptr) return {};
  const char* const answer = function();
  return answer == nullptr ? std::string() : std::string(answer);
}

}  // namespace

std::optional<OpenBlas> loaded_openblas() {
  OpenBlas openblas{.core = answer_of("openblas_get_corename"),
                    .config = answer_of("openblas_get_config")};
  if (openblas.core.empty()) return std::nullopt;
  return openblas;
}

void reserve_openblas_buffers(int count) {
  // These internal functions are exported for OpenBLAS's LAPACK.
  auto* const take = reinterpret_cast<void* (*)(int)>(dlsym(RTLD_DEFAULT, "blas_memory_alloc"));
  auto* const give_back =
      reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, "blas_memory_free"));
  if (take == nullptr || give_back == nullptr) return;
  constexpr int kAnyKind = 0;
  std::vector<void*> buffers(static_cast<std::size_t>(std::max(count, 0)));
  for (void*& buffer : buffers) buffer = take(kAnyKind);
  for (void* const buffer : buffers) give_back(buffer);
}

std::optional<InstructionSet> openblas_instruction_set(std::string_view core) {
  std::string name(core);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  const auto* const found = std::find_if(kCores.begin(), kCores.end(),
                                         [&](const auto& known) { return known.name == name; });
  if (found == kCores.end()) return std::nullopt;
  return found->value;
}

std::string_view openblas_core(InstructionSet set) {
  switch (set) {
    case InstructionSet::neon:
    case InstructionSet::sse:
      return {};
    case InstructionSet::avx:
      return "Sandybridge";
    case InstructionSet::avx2:
      return "Haswell";
    case InstructionSet::avx512:
      return "SkylakeX";
  }
  return {};
}

std::string_view better_openblas_core(const OpenBlas& openblas, InstructionSet cpu) {
  if (!openblas.chooses()) return {};
  const auto taken = openblas_instruction_set(openblas.core);
  return taken && *taken < cpu ? openblas_core(cpu) : std::string_view();
}

}  // namespace rubato
