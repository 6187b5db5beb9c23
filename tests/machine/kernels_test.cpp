#include "base/machine/kernels.hpp"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/machine.hpp>

#include "app/run_program.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::ProgramResult;
using testing::Pair;

using enum InstructionSet;

const OpenBlas kPrescott{.core = "Prescott", .config = "OpenBLAS 0.3.21 DYNAMIC_ARCH"};

Variables to_set(Kernels kernels, InstructionSet cpu, const std::optional<OpenBlas>& openblas,
                 std::map<std::string, std::string> environment = {}) {
  return variables_to_set(kernels, cpu, openblas,
                          [&](const std::string& name) { return environment[name]; });
}

TEST(Kernels, NativeCorrectsOpenBlasOnly) {
  EXPECT_THAT(to_set(Kernels::native, avx512, kPrescott),
              ElementsAre(Pair("OPENBLAS_CORETYPE", "SkylakeX")));
  EXPECT_THAT(to_set(Kernels::native, avx2, kPrescott),
              ElementsAre(Pair("OPENBLAS_CORETYPE", "Haswell")));
  EXPECT_THAT(to_set(Kernels::native, avx2, std::nullopt), IsEmpty());
}

TEST(Kernels, NativeLeavesTheUsersChoiceAlone) {
  EXPECT_THAT(to_set(Kernels::native, avx512, kPrescott, {{"OPENBLAS_CORETYPE", "Prescott"}}),
              IsEmpty());
}

TEST(Kernels, PortableHoldsEveryLibrary) {
  const Variables all = to_set(Kernels::portable, avx512, kPrescott);
  EXPECT_THAT(all,
              ElementsAre(Pair("ATEN_CPU_CAPABILITY", "avx2"), Pair("ONEDNN_MAX_CPU_ISA", "AVX2"),
                          Pair("ONEDNN_DEFAULT_FPMATH_MODE", "STRICT"),
                          Pair("OPENBLAS_CORETYPE", "Haswell")));
  EXPECT_EQ(to_set(Kernels::portable, avx2, kPrescott), all);
  std::map<std::string, std::string> environment(all.begin(), all.end());
  EXPECT_THAT(to_set(Kernels::portable, avx2, kPrescott, environment), IsEmpty());
  environment["OPENBLAS_CORETYPE"] = "Zen";
  EXPECT_THAT(to_set(Kernels::portable, avx2, kPrescott, environment),
              ElementsAre(Pair("OPENBLAS_CORETYPE", "Haswell")));
}

TEST(Kernels, PortableNeedsAvx2) {
  EXPECT_EQ(error_of([] { to_set(Kernels::portable, avx, kPrescott); }),
            "portable kernels need AVX2 and FMA, and this CPU has no more than AVX; accepted here: "
            "native");
}

// The program with the pretended OpenBLAS, with `variables` in its environment.
ProgramResult run(const std::vector<std::string>& variables,
                  const std::vector<std::string>& arguments = {}) {
  std::vector<std::string> all;
  for (const char* name : {"OPENBLAS_CORETYPE", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA",
                           "ONEDNN_DEFAULT_FPMATH_MODE", "RUBATO_STARTED_AGAIN"}) {
    all.insert(all.end(), {"-u", name});
  }
  all.insert(all.end(), variables.begin(), variables.end());
  all.emplace_back(RUBATO_PROGRAM);
  all.insert(all.end(), arguments.begin(), arguments.end());
  return test::run_program("/usr/bin/env", all);
}

// The core that this CPU should have.
std::string right_core() {
  return std::string(openblas_core(cpu_instruction_set()));
}

TEST(Kernels, AProgramIsStartedAgainOnceWithItsArguments) {
  if (right_core().empty()) GTEST_SKIP() << "this CPU has no kernels beyond Prescott's";
  const ProgramResult result = run({}, {"a b", ""});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, "<a b><> on " + right_core() + " OPENBLAS_CORETYPE=" + right_core() +
                            "\nOpenBLAS uses its " + right_core() +
                            " kernels; by itself it took those for Prescott, which are slower on "
                            "this CPU\n");
  EXPECT_EQ(result.err, "");
}

TEST(OpenMpBinding, IsToldWhereItHasTakenCpus) {
  const auto told = [](int allowed, std::map<std::string, std::string> environment) {
    return openmp_binding(allowed, 8, [&](const std::string& name) { return environment[name]; })
        .value_or("nothing");
  };
  EXPECT_EQ(told(1, {{"OMP_PROC_BIND", "true"}}),
            "OMP_PROC_BIND=true has bound this process to 1 of 8 CPUs; without it, training has "
            "all");
  EXPECT_THAT(told(2, {{"GOMP_CPU_AFFINITY", "0-1"}}), StartsWith("GOMP_CPU_AFFINITY=0-1"));
  EXPECT_EQ(told(8, {{"OMP_PROC_BIND", "true"}}), "nothing");
  EXPECT_EQ(told(1, {}), "nothing") << "taskset or a cpuset, as was meant";
}

TEST(Kernels, AProgramIsNotStartedAgainWithoutNeed) {
  EXPECT_EQ(run({"OPENBLAS_CORETYPE=Prescott"}).out, " on Prescott OPENBLAS_CORETYPE=Prescott\n");
  EXPECT_EQ(run({"OPENBLAS_CORETYPE=Haswell"}).out, " on Haswell OPENBLAS_CORETYPE=Haswell\n");
  EXPECT_EQ(run({"PRETENDED_CONFIG=OpenBLAS 0.3.21"}).out, " on Prescott\n");
  // Where the environment does not last, it goes on with what it has.
  EXPECT_THAT(run({"RUBATO_STARTED_AGAIN=native:Prescott"}).out, HasSubstr(" on Prescott\n"));
}

TEST(Kernels, AProgramComputesWithPortableKernels) {
  const ProgramResult result = run({"OPENBLAS_CORETYPE=Prescott"}, {"--portable"});
  if (cpu_instruction_set() == InstructionSet::neon) {
    EXPECT_EQ(result.out, "<--portable> on Prescott OPENBLAS_CORETYPE=Prescott\n") << "one kind";
    return;
  }
  if (cpu_instruction_set() < avx2) {
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.out, HasSubstr("portable kernels need AVX2"));
    return;
  }
  EXPECT_EQ(result.out,
            "<--portable> on Haswell ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 "
            "OPENBLAS_CORETYPE=Haswell\nportable kernels: AVX2 and FMA, as on every CPU\n");
}

}  // namespace
}  // namespace rubato
