// OpenBLAS is asked through dlsym(), so this file works in programs with and without it, and needs
// none of its headers. Libraries choose their kernels when they are loaded, before main(), so
// use_right_kernels() can only set environment variables and call execve() on /proc/self/exe with
// the same arguments. RUBATO_STARTED_AGAIN in the new environment marks the second start: it
// prevents endless restarts if the variables have no effect, and tells kernel_start() what was
// corrected. Functions that decide by variables get a function that reads them, so tests can
// replace the environment.

#include "kernels.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <rubato/base/machine.hpp>

#include "base/core/process.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"

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
  const std::string name = lower_case(core);
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

namespace {

// Set to "<kernels>:<core that OpenBLAS chose before>" when the program is started again, so that
// it is not started again for ever.
constexpr const char* kMarker = "RUBATO_STARTED_AGAIN";
constexpr const char* kOpenBlasCore = "OPENBLAS_CORETYPE";

// Variables of GCC's OpenMP and of Intel's.
constexpr std::array<const char*, 4> kOpenMpBinding{"OMP_PROC_BIND", "OMP_PLACES",
                                                    "GOMP_CPU_AFFINITY", "KMP_AFFINITY"};

// Variables that make the libraries choose these kernels. STRICT keeps oneDNN from computing
// float32 in bfloat16.
const Variables& portable_variables() {
  static const Variables variables{{"ATEN_CPU_CAPABILITY", "avx2"},
                                   {"ONEDNN_MAX_CPU_ISA", "AVX2"},
                                   {"ONEDNN_DEFAULT_FPMATH_MODE", "STRICT"},
                                   {kOpenBlasCore, "Haswell"}};
  return variables;
}

std::string environment_variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::string() : std::string(value);
}

// The environment of this process, with `variables` replaced.
std::vector<std::string> environment_with(const Variables& variables) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced = std::any_of(variables.begin(), variables.end(),
                                      [&](const auto& variable) { return variable.first == name; });
    if (!replaced) environment.emplace_back(text);
  }
  for (const auto& [name, value] : variables) {
    environment.push_back(fmt::format("{}={}", name, value));
  }
  return environment;
}

// Returns only on failure, with the reason.
std::string start_again(char* const* argv, const Variables& variables) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return error.message();
  // A program run through the dynamic loader or an emulator has other arguments.
  if (program.filename().string().starts_with("ld-")) return "it was started by the loader's name";
  const std::vector<std::string> environment = environment_with(variables);
  execve(program.c_str(), argv, exec_pointers(environment).data());
  return std::generic_category().message(errno);
}

}  // namespace

void ignore_openmp_binding() {
  for (const char* const name : kOpenMpBinding) unsetenv(name);  // NOLINT(concurrency-mt-unsafe)
}

std::optional<std::string> openmp_binding(int allowed, int online, const ReadVariable& read) {
  if (allowed >= online) return std::nullopt;
  for (const char* const name : kOpenMpBinding) {
    if (read(name).empty()) continue;
    return fmt::format(
        "{}={} has bound this process to {} of {} CPUs; without it, training has all", name,
        read(name), allowed, online);
  }
  return std::nullopt;
}

std::optional<std::string> openmp_binding() {
  return openmp_binding(cpus().allowed, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)),
                        environment_variable);
}

Variables variables_to_set(Kernels kernels, InstructionSet cpu,
                           const std::optional<OpenBlas>& openblas, const ReadVariable& read) {
  Variables missing;
  if (kernels == Kernels::native) {
    const std::string_view core = openblas ? better_openblas_core(*openblas, cpu) : "";
    if (!core.empty() && read(kOpenBlasCore).empty()) missing.emplace_back(kOpenBlasCore, core);
    return missing;
  }
  // ARM has only one kind of kernels; there is no choice in libtorch's libraries.
  if (cpu == InstructionSet::neon) return missing;
  if (!has_fma(cpu)) {
    throw_error(
        "portable kernels need AVX2 and FMA, and this CPU has no more than {}; accepted here: "
        "native",
        choice_name(kInstructionSets, cpu));
  }
  for (const auto& variable : portable_variables()) {
    if (read(variable.first) != variable.second) missing.push_back(variable);
  }
  return missing;
}

std::optional<KernelStart> kernel_start() {
  const std::string marker = environment_variable(kMarker);
  const std::size_t colon = marker.find(':');
  if (colon == std::string::npos) return std::nullopt;
  for (const auto& choice : kKernels) {
    if (choice.name == marker.substr(0, colon)) {
      return KernelStart{.kernels = choice.value, .openblas_before = marker.substr(colon + 1)};
    }
  }
  return std::nullopt;
}

void use_right_kernels(char* const* argv, Kernels kernels) {
  const auto openblas = loaded_openblas();
  Variables variables =
      variables_to_set(kernels, cpu_instruction_set(), openblas, environment_variable);
  if (variables.empty()) return;
  const auto before = kernel_start();
  std::string why = "the environment does not keep its variables";
  if (!before || before->kernels != kernels) {
    variables.emplace_back(kMarker, fmt::format("{}:{}", choice_name(kKernels, kernels),
                                                openblas ? openblas->core : ""));
    why = start_again(argv, variables);
  }
  if (kernels == Kernels::portable) {
    throw_error("cannot start again with portable kernels: {}", why);
  }
}

std::string describe(const KernelStart& start) {
  if (start.kernels == Kernels::portable) return "portable kernels: AVX2 and FMA, as on every CPU";
  const auto openblas = loaded_openblas();
  const std::string now = openblas ? openblas->core : "no";
  return fmt::format(
      "OpenBLAS uses its {} kernels; by itself it took those for {}, which are slower "
      "on this CPU",
      now, start.openblas_before);
}

}  // namespace rubato
