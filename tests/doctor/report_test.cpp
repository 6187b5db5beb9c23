#include <sstream>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "runs/doctor/facts.hpp"
#include "runs/doctor/findings.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato::doctor {
namespace {

const std::vector<Finding> kFindings{
    {.subject = "BLAS", .health = Health::good, .what = "OpenBLAS"},
    {.subject = "threads",
     .health = Health::problem,
     .what = "9 threads on 8 CPUs: threads will wait for CPUs, and steps for the last thread",
     .advice = "--threads 8"},
    {.subject = "huge pages", .health = Health::note, .what = "never", .advice = "always"}};

TEST(DoctorReport, SaysWhatThereIsAndWhatToDo) {
  EXPECT_EQ(report_text(kFindings),
            "good     BLAS        OpenBLAS\n"
            "problem  threads     9 threads on 8 CPUs: threads will wait for CPUs, and steps\n"
            "                     for the last thread\n"
            "                     to do: --threads 8\n"
            "note     huge pages  never\n"
            "                     to do: always\n"
            "\n1 problem, 1 note\n");
  EXPECT_THAT(report_text(std::span(kFindings).first(1)), HasSubstr("\nall is well, 0 notes\n"));
}

TEST(DoctorReport, FitsANarrowTerminal) {
  EXPECT_EQ(report_text(std::span(kFindings).first(2), {40}),
            "good     BLAS\n"
            "    OpenBLAS\n"
            "problem  threads\n"
            "    9 threads on 8 CPUs: threads will\n"
            "    wait for CPUs, and steps for the\n"
            "    last thread\n"
            "    to do: --threads 8\n"
            "\n1 problem, 0 notes\n");
}

TEST(DoctorReport, IsWellWithoutProblems) {
  EXPECT_FALSE(is_well(kFindings));
  EXPECT_TRUE(is_well(std::span(kFindings).first(1)));
  EXPECT_TRUE(is_well(std::span(kFindings).last(1)));
}

TEST(DoctorReport, IsJsonForPrograms) {
  Facts facts;
  facts.processor = "Fast CPU 9000";
  facts.training = TrainingProcess{.gflops = 145, .versions = {{"zlib", "1.2.13", "1.3"}}};
  const auto json = nlohmann::json::parse(report_json(facts, kFindings));
  EXPECT_EQ(json["well"], false);
  EXPECT_EQ(json["findings"][1]["subject"], "threads");
  EXPECT_EQ(json["findings"][1]["health"], "problem");
  EXPECT_EQ(json["findings"][1]["advice"], "--threads 8");
  EXPECT_TRUE(json["findings"][0]["advice"].is_null());
  EXPECT_EQ(json["facts"]["processor"], "Fast CPU 9000");
  EXPECT_EQ(json["facts"]["gflops"], 145);
  EXPECT_EQ(json["facts"]["versions"]["zlib"]["runs"], "1.3");
  EXPECT_TRUE(json["facts"]["cpu_quota"].is_null());
}

TEST(DoctorProbe, CrossesThePipe) {
  const TrainingProcess process{.blas_file = "/lib/a \"b\".so",
                                .blas = "OpenBLAS",
                                .blas_is_fast = true,
                                .openblas_core = "Haswell",
                                .openblas_by_itself = "Prescott",
                                .aten = "AVX2",
                                .onednn = "avx2",
                                .gflops = 12.5,
                                .malloc_file = "/lib/malloc.so",
                                .versions = {{"zlib", "1.2.13", "1.3"}}};
  const TrainingProcess read = parse_probe(probe_text(process));
  EXPECT_EQ(probe_text(read), probe_text(process));
  EXPECT_EQ(read.blas_file, process.blas_file);
  EXPECT_EQ(read.versions, process.versions);
  for (const char* wrong : {"", "{}", "[1]", "Segmentation fault"}) {
    EXPECT_THAT(error_of([&] { return parse_probe(wrong); }),
                HasSubstr("rubato does not understand the answer of rubato-train"));
  }
}

TEST(DoctorProbe, FindsTheMallocAndVersionsOfThisProcess) {
  const TrainingProcess process = probe_this_process();
  EXPECT_NE(process.malloc_file, "");
  ASSERT_EQ(process.versions.size(), 4U);
  for (const Version& version : process.versions) {
    EXPECT_NE(version.built, "") << version.library;
    EXPECT_NE(version.runs, "") << version.library;
  }
}

TEST(DoctorProbe, AProgramThatFailsIsAnError) {
  EXPECT_EQ(output_of("/bin/echo", "hello"), "hello\n");
  EXPECT_THAT(error_of([] { return output_of("/bin/false", ""); }),
              HasSubstr("/bin/false cannot run, or fails"));
  EXPECT_THAT(error_of([] { return output_of("/no/such/program", ""); }),
              HasSubstr("/no/such/program cannot run, or fails"));
}

}  // namespace
}  // namespace rubato::doctor
