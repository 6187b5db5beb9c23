#include "runs/doctor/findings.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "support/matchers.hpp"

namespace rubato::doctor {
namespace {

using testing::Field;

// A machine on which all is well.
Facts healthy() {
  return {.processor = "Fast CPU 9000",
          .instruction_set = InstructionSet::avx512,
          .online = 8,
          .cores = 8,
          .cpus = {.allowed = 8, .quota = std::nullopt},
          .threads = 8,
          .huge_pages = "madvise",
          .governor = "performance",
          .frequency_driver = "acpi-cpufreq",
          .coretype = {},
          .preloaded = {},
          .training = TrainingProcess{.blas_file = "/usr/lib/libopenblas.so.0",
                                      .blas = "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH",
                                      .blas_is_fast = true,
                                      .openblas_core = "SkylakeX",
                                      .openblas_by_itself = "SkylakeX",
                                      .aten = "AVX2",
                                      .onednn = "avx512_core",
                                      .gflops = 145.2,
                                      .malloc_file = "/usr/lib/libtbbmalloc_proxy.so.2.8",
                                      .versions = {{"oneTBB", "2021.8", "2021.8"}}},
          .no_training = {}};
}

Finding about(std::string_view subject, const Facts& facts) {
  const std::vector<Finding> all = findings(facts);
  return *std::ranges::find(all, subject, &Finding::subject);
}

testing::Matcher<Finding> is(Health health, const char* what, const char* advice) {
  return AllOf(Field(&Finding::health, health), Field(&Finding::what, HasSubstr(what)),
               Field(&Finding::advice, HasSubstr(advice)));
}
testing::Matcher<Finding> is_good(const char* what) {
  return AllOf(Field(&Finding::health, Health::good), Field(&Finding::what, HasSubstr(what)),
               Field(&Finding::advice, IsEmpty()));
}

TEST(Findings, OfAHealthyMachineAreGood) {
  const auto all = findings(healthy());
  EXPECT_EQ(all.size(), 10U);
  EXPECT_THAT(all, Each(is_good("")));
  EXPECT_THAT(about("processor", healthy()), is_good("Fast CPU 9000, with AVX-512"));
  EXPECT_THAT(about("BLAS", healthy()),
              is_good("OpenBLAS 0.3.21 (/usr/lib/libopenblas.so.0), 145 GFLOP/s"));
}

TEST(Findings, AnOldProcessor) {
  Facts facts = healthy();
  facts.instruction_set = InstructionSet::avx;
  EXPECT_THAT(about("processor", facts), is(Health::note, "need AVX2", "cpu=host"));
}

TEST(Findings, AReferenceBlas) {
  Facts facts = healthy();
  facts.training->blas = "";
  facts.training->blas_is_fast = false;
  facts.training->openblas_core = "";
  EXPECT_THAT(about("BLAS", facts), is(Health::problem, "ten times slower", "libopenblas0"));
  EXPECT_THAT(about("kernels", facts), is_good("ATen AVX2, oneDNN avx512_core"));
}

TEST(Findings, TheKernelsOfOpenBlas) {
  Facts facts = healthy();
  facts.training->openblas_by_itself = "Prescott";
  EXPECT_THAT(about("kernels", facts), is_good("OpenBLAS SkylakeX (by itself it took Prescott"));
  facts.coretype = "Prescott";
  facts.training->openblas_core = "Prescott";
  EXPECT_THAT(about("kernels", facts),
              is(Health::problem, "OpenBLAS Prescott, which uses SSE where the CPU has AVX-512",
                 "unset OPENBLAS_CORETYPE, which is Prescott, or set it to SkylakeX"));
  facts.coretype = "Haswell";
  facts.training->openblas_core = "Haswell";
  EXPECT_THAT(about("kernels", facts), is(Health::note, "AVX2 with FMA", "SkylakeX"));
  facts.instruction_set = InstructionSet::avx2;
  EXPECT_THAT(about("kernels", facts), is_good("OpenBLAS Haswell"));
  facts = healthy();
  facts.training->openblas_core = "Nehalem";
  EXPECT_THAT(about("kernels", facts), is(Health::problem, "Nehalem", "DYNAMIC_ARCH"));
}

TEST(Findings, AnotherMalloc) {
  Facts facts = healthy();
  facts.training->malloc_file = "/usr/lib/libc.so.6";
  facts.preloaded = "libc.so.6";
  EXPECT_THAT(about("allocator", facts),
              is(Health::problem, "/usr/lib/libc.so.6", "unset LD_PRELOAD, which is libc.so.6"));
  facts.training->malloc_file = "/usr/lib/libjemalloc.so.2";
  EXPECT_THAT(about("allocator", facts), is_good("jemalloc"));
}

TEST(Findings, ThreadsAndTheCpusTheyMayUse) {
  Facts facts = healthy();
  facts.threads = 9;
  EXPECT_THAT(about("threads", facts), is(Health::problem, "9 threads on 8 CPUs", "--threads 8"));
  facts.threads = 4;
  EXPECT_THAT(about("threads", facts), is(Health::note, "idle", "--threads 8"));
  facts.cpus = {.allowed = 4, .quota = std::nullopt};
  EXPECT_THAT(about("threads", facts), is(Health::note, "the machine has 8", "affinity"));
  facts.cpus = {.allowed = 8, .quota = 3.5};
  EXPECT_THAT(about("threads", facts), is(Health::note, "grants 3.5; the machine has 8", "quota"));
  facts.threads = 8;
  EXPECT_THAT(about("threads", facts), is(Health::problem, "wait for CPUs", "--threads 4"));
}

TEST(Findings, ALoadedMachine) {
  Facts facts = healthy();
  facts.load = {};
  EXPECT_THAT(about("load", facts), is_good("does not say"));
  facts.load = 0.3;
  EXPECT_THAT(about("load", facts), is_good("0.3 threads wanted a CPU"));
  facts.load = 3.5;
  EXPECT_THAT(about("load", facts), is(Health::note, "3.5 threads", "end other programs"));
  // There is room beside it.
  facts.threads = 4;
  EXPECT_THAT(about("load", facts), is_good("of which there are 8"));
}

TEST(Findings, HyperThreads) {
  Facts facts = healthy();
  facts.cores = 4;
  EXPECT_THAT(about("hyper-threads", facts), is(Health::note, "8 CPUs are 4 cores", "--threads 4"));
  facts.threads = 4;
  EXPECT_THAT(about("hyper-threads", facts), is_good("4 cores"));
  facts.threads = 9;
  facts.cores = 8;
  EXPECT_THAT(about("hyper-threads", facts), is_good("8 CPUs are 8 cores"));
  facts.cores = 0;
  EXPECT_THAT(about("hyper-threads", facts), is_good("does not say"));
}

TEST(Findings, HugePages) {
  Facts facts = healthy();
  facts.huge_pages = "never";
  EXPECT_THAT(about("huge pages", facts), is(Health::note, "never", "echo madvise"));
  facts.huge_pages = "";
  EXPECT_THAT(about("huge pages", facts), is_good("does not say"));
}

TEST(Findings, FrequencyOfTheCpus) {
  Facts facts = healthy();
  facts.governor = "powersave";
  EXPECT_THAT(about("frequency", facts), is(Health::problem, "lowest frequency", "performance"));
  facts.frequency_driver = "intel_pstate";
  EXPECT_THAT(about("frequency", facts), is_good("governor powersave (intel_pstate)"));
  facts.governor = "";
  EXPECT_THAT(about("frequency", facts), is_good("cannot be seen"));
}

TEST(Findings, LibrariesThatAreOlder) {
  Facts facts = healthy();
  facts.training->versions = {{"oneTBB", "2021.10", "2021.8"}, {"zlib", "1.2.13", "1.3"}};
  EXPECT_THAT(about("versions", facts),
              is(Health::problem, "than it was built with: oneTBB 2021.8 (built with 2021.10)",
                 "build it again"));
  facts.training->versions = {{"oneTBB", "2021.8", "2021.10"},
                              {"glibc", "2.36", "2.36"},
                              {"OpenSSL", "3.0.19", "3.0.2+quic"},
                              {"oneDNN", "", "2.6.3"}};
  EXPECT_THAT(about("versions", facts), is(Health::problem, "OpenSSL 3.0.2", ""));
  facts.training->versions[2].runs = "3.1.0";
  EXPECT_THAT(about("versions", facts),
              is_good("oneTBB 2021.10, glibc 2.36, OpenSSL 3.1.0, oneDNN 2.6.3"));
}

TEST(Findings, WithoutAProgramThatTrains) {
  Facts facts = healthy();
  facts.training.reset();
  facts.no_training = "there is no rubato-train";
  for (const char* subject : {"BLAS", "kernels", "allocator", "versions"}) {
    EXPECT_THAT(about(subject, facts),
                is(Health::note, "cannot be seen: there is no rubato-train", ""));
  }
}

}  // namespace
}  // namespace rubato::doctor
