#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/loop/reducer.hpp>

#include "app/run_program.hpp"
#include "support/matchers.hpp"
#include "support/sanitizers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using nlohmann::json;
using test::ProgramResult;

ProgramResult bench(const test::Words& more) {
  return test::rubato("bench reduce --peers=false --seconds 0.001 --threads 2 --size 1000" + more);
}

TEST(BenchReduce, MeasuresEveryStrategy) {
  const ProgramResult result = bench("--json --cores 2,5");
  ASSERT_EQ(result.code, 0) << result.err;
  const json report = json::parse(result.out);
  for (const char* name : {"processor", "caches", "kernel", "compiler", "blas"}) {
    EXPECT_NE(report["environment"][name], "") << name;
  }
  std::set<std::string> measured;
  for (const json& row : report["measurements"]) {
    measured.insert(row["strategy"]);
    EXPECT_EQ(row["reproducible"], is_reproducible(std::string(row["strategy"])));
    EXPECT_EQ(row["size"], 1000);
    EXPECT_GE(row["runs"], 6) << "two in each round, however short";
    EXPECT_GT(row["median_seconds"], 0);
    EXPECT_LE(row["min_seconds"], row["median_seconds"]);
    EXPECT_LE(row["median_seconds"], row["max_seconds"]);
    EXPECT_GT(row["bytes_moved"], 0);
    EXPECT_GT(row["triad_bytes_per_second"], 1e8);
  }
  std::set<std::string> strategies{"mutex", "atomic", "tbb"};
  strategies.insert(reducer_names().begin(), reducer_names().end());
  EXPECT_EQ(measured, strategies);
  EXPECT_EQ(report["measurements"].size(), 2 * strategies.size());
}

// The hand-written loop has at most eight arrays.
TEST(BenchReduce, MeasuresTheLoopUpToEightCores) {
  const ProgramResult result = bench("--json --cores 8,9 --fused");
  ASSERT_EQ(result.code, 0) << result.err;
  std::vector<std::int64_t> cores;
  const json report = json::parse(result.out);
  for (const json& row : report["measurements"]) {
    if (row["strategy"] == "loop") cores.push_back(row["cores"]);
  }
  EXPECT_EQ(cores, std::vector<std::int64_t>{8});
}

TEST(BenchReduce, SaysWhenItsOutputIsLost) {
  const std::string arguments =
      "bench reduce --strategy=tree --size=8 --seconds=1e-6 --peers=false";
  test::expect_lost_output_is_said(arguments);
  test::expect_lost_output_is_said(arguments + " --json");
}

TEST(BenchReduce, CountsWhatAStrategyMoves) {
  const json report =
      json::parse(bench("--json --fused --cores 8 --strategy loop,sharded,tree,ring").out);
  std::vector<double> arrays;
  for (const json& row : report["measurements"]) {
    arrays.push_back(static_cast<double>(row["bytes_moved"]) / 4000);
  }
  // N + 4; the same; 3 (N - 1) and 5 of the update; N (N - 1) parts of 1/N, added and then copied.
  EXPECT_THAT(arrays, ElementsAre(12, 12, 26, 7 * 3 + 7 * 2 + 5));
}

TEST(BenchReduce, PrintsATable) {
  const ProgramResult table = bench("--strategy tree,sharded --arrival straggler");
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("processor "),
                               HasSubstr("8 cores x 1000 floats, 2 threads, "
                                         "straggler arrival, hot cache"),
                               HasSubstr("\ntree "), HasSubstr("\nsharded ")));
}

TEST(BenchReduce, TakesTwoLevelsWithTheirArguments) {
  const ProgramResult result = bench(
      "--json --cores 6 --strategy "
      "tree,two-level:hosts=2,inner=halving-doubling,ring,two-level:outer=ring");
  ASSERT_EQ(result.code, 0) << result.err;
  const json report = json::parse(result.out);
  std::vector<std::string> measured;
  for (const json& row : report["measurements"]) measured.push_back(row["strategy"]);
  EXPECT_THAT(measured, ElementsAre("tree", "two-level:hosts=2,inner=halving-doubling", "ring",
                                    "two-level:outer=ring"));
  EXPECT_THAT(bench("--strategy two-level:hosts=0").err,
              HasSubstr("--strategy: two-level: hosts: "));
  EXPECT_THAT(bench("--strategy two-level:inner=rings").err, HasSubstr("did you mean 'ring'?"));
}

// More than any machine has. Nothing was allocated.
TEST(BenchReduce, RefusesWhatCannotHaveItsMemory) {
  const ProgramResult large = test::rubato("bench reduce --cores 8,4096 --size 2147483648");
  EXPECT_EQ(large.code, 25) << large.err;
  EXPECT_THAT(large.err, AllOf(HasSubstr("rubato bench reduce: "),
                               HasSubstr(" cores x 2147483648 floats needs "),
                               HasSubstr("fewer --cores or a smaller --size")));
  EXPECT_EQ(large.out, "");
}

TEST(BenchReduce, RefusesWhatALimitOfAddressesLeavesNoRoomFor) {
  if (test::kSanitized) GTEST_SKIP() << "the sanitizer itself needs more addresses";
  const ProgramResult limited = test::shell(
      "ulimit -v 2000000 && exec \"$0\" bench reduce --cores 64 --size 10000000 --threads 2");
  EXPECT_EQ(limited.code, 25) << limited.err;
  EXPECT_THAT(limited.err, AllOf(HasSubstr("64 cores x 10000000 floats needs 2.56 GB"),
                                 HasSubstr("what ulimit -v leaves")));
}

TEST(BenchReduce, RejectsWhatItCannotMeasure) {
  EXPECT_THAT(bench("--strategy trees").err, HasSubstr("did you mean 'tree'?"));
  EXPECT_THAT(bench("--cores 2,x").err, HasSubstr("--cores: 'x' is not a number"));
  EXPECT_THAT(bench("--fused --strategy loop --cores 9").err, HasSubstr("at most 8 cores"));
  EXPECT_EQ(bench("--arrival never").code, 2);
  EXPECT_THAT(test::rubato("bench reuce").err, HasSubstr("did you mean 'reduce'?"));
  EXPECT_EQ(test::rubato("bench").code, 2);
}

// Peers lie beside the program; here the first one fails.
TEST(BenchReduce, GoesOnWithoutAPeerThatFails) {
  const test::TempFolder folder;
  std::filesystem::copy_file(RUBATO_PROGRAM, folder.path() / "rubato");
  for (const auto& [name, script] : {std::pair{"rubato-peer-mpi", "#!/bin/sh\nexit 1\n"},
                                     std::pair{"rubato-peer-gloo", "#!/bin/sh\necho 0.5 end\n"}}) {
    folder.write(name, script);
    std::filesystem::permissions(folder.path() / name, std::filesystem::perms::owner_all);
  }
  const ProgramResult result = test::run_program(
      folder.path() / "rubato",
      "bench reduce --json --seconds=0.001 --threads=2 --size=1000 --cores=2 --strategy=tree");
  ASSERT_EQ(result.code, 0) << result.err;
  const json report = json::parse(result.out);
  ASSERT_EQ(report["measurements"].size(), 2U);
  EXPECT_EQ(report["measurements"][1]["strategy"], "gloo");
  EXPECT_EQ(report["measurements"][1]["median_seconds"], 0.5);
}

}  // namespace
}  // namespace rubato
