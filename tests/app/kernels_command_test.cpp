// Training under the kernels of other CPUs: what is said, recorded, held and refused.

#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "app/run_program.hpp"
#include "app/small_training.hpp"
#include "base/machine/instruction_set.hpp"
#include "support/json_fields.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::ProgramResult;
using test::Words;

const Words kOldCpu =
    "ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 OPENBLAS_CORETYPE=Prescott";
// What ATen calls its kernels there: the second name is that of libtorch 2.9.
const auto kOldAten = AnyOf("NO AVX", "DEFAULT");

class KernelsCommand : public test::SmallTraining {
 protected:
  void SetUp() override {
    SmallTraining::SetUp();
    write_trace(std::vector<int>(20, 32));
  }

  // `rubato COMMAND...` with `variables` in its environment.
  [[nodiscard]] ProgramResult run(const Words& variables, const Words& command) const {
    return test::run_program("/usr/bin/env", variables + RUBATO_PROGRAM + command, folder_.path());
  }
  [[nodiscard]] ProgramResult train(const Words& variables, const Words& more) const {
    return run(
        variables,
        "train --data mnist:data --model mlp --engine libtorch --trace trace.csv --epochs 1" +
            more);
  }
  // Whether the kernels of another CPU can be had: those of an OpenBLAS that is built for many.
  [[nodiscard]] static bool has_avx2() { return cpu_instruction_set() >= InstructionSet::avx2; }
};

TEST_F(KernelsCommand, TheUsersChoiceIsLeftAloneAndRecorded) {
  const ProgramResult result = train(kOldCpu, {"--out=run"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, Not(HasSubstr("OpenBLAS")));
  const auto kernels = summary("run")["kernels"];
  EXPECT_EQ(kernels["wanted"], "native");
  EXPECT_EQ(kernels["cpu"], choice_name(kInstructionSets, cpu_instruction_set()));
  test::expect_fields(kernels, R"({"openblas": "Prescott", "openblas_by_itself": "Prescott",
        "onednn": "sse41"})");
  EXPECT_THAT(kernels["aten"], kOldAten);
}

TEST_F(KernelsCommand, PortableIsTheSameWhateverTheLibrariesWouldTake) {
  if (!has_avx2()) GTEST_SKIP() << "needs AVX2";
  for (const auto& [name, variables] :
       {std::pair{"new", Words("-u OPENBLAS_CORETYPE")}, std::pair{"old", kOldCpu}}) {
    const ProgramResult result =
        train(variables, std::string("--kernels=portable --threads=1 --out ") + name);
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_THAT(result.out, HasSubstr("\nportable kernels: AVX2 and FMA, as on every CPU\n"));
    const auto kernels = summary(name)["kernels"];
    test::expect_fields(kernels, R"({"wanted": "portable", "openblas": "Haswell", "aten": "AVX2",
          "onednn": "avx2"})");
  }
  EXPECT_EQ(hash("new"), hash("old"));
  EXPECT_THAT(content("new/config.toml"), HasSubstr("kernels = \"portable\"\n"));
}

// Where oneDNN 2.6 writes beyond its memory: shortcuts with few channels, and channels last.
TEST_F(KernelsCommand, NarrowResidualNetworksTrainOnAnOlderCpu) {
  if (!has_avx2()) GTEST_SKIP() << "needs AVX2";
  for (const std::string operators : {"all", "none"}) {
    const ProgramResult result = train(
        {"ONEDNN_MAX_CPU_ISA=AVX2"},
        {"--model=resnet20:width=4", "--operators=" + operators, "--quiet", "--out=" + operators});
    EXPECT_EQ(result.code, 0) << operators << ": " << result.err;
  }
}

TEST_F(KernelsCommand, AResumeOnOtherKernelsSaysSo) {
  if (!has_avx2()) GTEST_SKIP() << "needs AVX2";
  const Words haswell =
      "ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 OPENBLAS_CORETYPE=Haswell";
  ASSERT_EQ(train(haswell, {"--out=run"}).code, 0);
  const ProgramResult same = run(haswell, "train --resume=run --epochs=2");
  EXPECT_EQ(same.code, 0);
  EXPECT_EQ(same.err, "");
  const ProgramResult other = run(kOldCpu, "train --resume=run --epochs=2");
  EXPECT_EQ(other.code, 0);
  EXPECT_THAT(
      other.err,
      MatchesRegex(
          "rubato train: the run was computed with OpenBLAS Haswell, ATen AVX2, oneDNN avx2\n"
          "and continues with OpenBLAS Prescott, ATen (NO AVX|DEFAULT), oneDNN sse41: its bits may "
          "differ from those of a run that was not interrupted "
          "\\(--kernels portable keeps them\\)\n"));
  EXPECT_THAT(run(haswell, "train --resume=run --kernels=portable").err,
              HasSubstr("--kernels was native, is portable"));
}

TEST_F(KernelsCommand, APortableRunGoesOnExactlyOnOtherKernels) {
  if (!has_avx2()) GTEST_SKIP() << "needs AVX2";
  ASSERT_EQ(train("-u OPENBLAS_CORETYPE", "--kernels=portable --out=whole --epochs=2").code, 0);
  ASSERT_EQ(train("-u OPENBLAS_CORETYPE", "--kernels=portable --out=run").code, 0);
  const ProgramResult result = run(kOldCpu, "train --resume=run --epochs=2");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(hash("run"), hash("whole"));
}

TEST_F(KernelsCommand, TheDoctorSeesThem) {
  const ProgramResult result = run(kOldCpu, "doctor --json");
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_EQ(report["facts"]["openblas"], "Prescott");
  EXPECT_EQ(report["facts"]["openblas_by_itself"], "Prescott");
  EXPECT_THAT(report["facts"]["aten"], kOldAten);
  EXPECT_GT(report["facts"]["gflops"], 0);
  EXPECT_EQ(report["findings"][2]["subject"], "kernels");
  EXPECT_EQ(report["findings"][3]["subject"], "allocator");
  EXPECT_EQ(report["findings"][3]["health"], "good");
  EXPECT_EQ(result.code, report["well"] ? 0 : 26);
  if (!has_avx2()) return;
  EXPECT_EQ(report["findings"][2]["health"], "problem");
  EXPECT_EQ(result.code, 26);
}

// What needs no libtorch is held to the same instruction set.
TEST_F(KernelsCommand, PortableIsTheSameForEigen) {
  if (!has_avx2()) GTEST_SKIP() << "needs AVX2";
  const auto hash_of = [&](const std::string& name, const std::string& capability,
                           const std::string& kernels) {
    const ProgramResult result = train({"ATEN_CPU_CAPABILITY=" + capability},
                                       {"--engine=eigen", "--kernels", kernels, "--out", name});
    EXPECT_EQ(result.code, 0) << result.err;
    return hash(name);
  };
  const std::string portable = hash_of("one", "default", "portable");
  EXPECT_EQ(summary("one")["kernels"]["eigen"], "AVX2 with FMA");
  EXPECT_EQ(hash_of("two", "avx512", "portable"), portable);
  EXPECT_NE(hash_of("three", "default", "native"), portable) << "SSE has other bits";
  EXPECT_EQ(summary("three")["kernels"]["eigen"], "SSE");
}

// Every row "| `rubato train ...` | `hash` |" of docs/kernels.md.
TEST_F(KernelsCommand, TheKnownHashesAreMet) {
  if (!has_avx2()) GTEST_SKIP() << "needs AVX2";
  const std::regex row("\n\\| `rubato ([^`]+)` \\| `([0-9a-f]{64})` \\|");
  const std::string text = test::read_file(RUBATO_KERNELS_MD);
  int known = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it) {
    const std::string name = std::to_string(known++);
    const ProgramResult result =
        run({}, (*it)[1].str() + " --quiet --checkpoint-every never --out " + name);
    ASSERT_EQ(result.code, 0) << result.err;
    const auto versions = summary(name)["versions"];
    const bool debians =
        versions.contains("eigen")
            ? versions["eigen"] == "3.4.0"
            : versions["torch"] == "1.13.0" &&
                  versions["blas"].get<std::string>().starts_with("OpenBLAS 0.3.21 ");
    if (!debians) GTEST_SKIP() << "the hashes are those of Debian 12's libraries";
    EXPECT_EQ(hash(name), (*it)[2]) << (*it)[1];
  }
  EXPECT_EQ(known, 4);
}

}  // namespace
}  // namespace rubato
