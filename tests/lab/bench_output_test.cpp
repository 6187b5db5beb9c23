#include "clients/app/bench_output.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace rubato::app {
namespace {

// Every number another one, so that none can stand in the place of another.
std::vector<BenchRow> rows() {
  return {{.strategy = "slow",
           .reproducible = true,
           .task = {.cores = 8, .size = 1000},
           .threads = 3,
           .options = {.arrival = lab::Arrival::skewed, .cache = lab::Cache::cold},
           .seconds = {.median = 0.5, .min = 0.25, .max = 2, .runs = 7},
           .bytes_moved = 48000,
           .triad = 4e6},
          {.strategy = "two-level:hosts=2,inner=ring",
           .task = {.cores = 8, .size = 1000, .fused = true},
           .threads = 3,
           .options = {.arrival = lab::Arrival::straggler},
           .seconds = {.median = 0.125, .min = 0.0625, .max = 0.1875, .runs = 9},
           .triad = 4e6}};
}

TEST(BenchOutput, PutsEveryNumberIntoItsFieldOfJson) {
  const auto json = nlohmann::json::parse(bench_json(rows()));
  const nlohmann::json expected{{"strategy", "slow"},
                                {"reproducible", true},
                                {"cores", 8},
                                {"size", 1000},
                                {"fused", false},
                                {"threads", 3},
                                {"arrival", "skewed"},
                                {"cache", "cold"},
                                {"runs", 7},
                                {"median_seconds", 0.5},
                                {"min_seconds", 0.25},
                                {"max_seconds", 2.0},
                                {"buffer_bytes_per_second", 8000.0},
                                {"bytes_moved", 48000.0},
                                {"moved_bytes_per_second", 96000.0},
                                {"triad_bytes_per_second", 4e6}};
  EXPECT_EQ(json["measurements"][0], expected);
  EXPECT_EQ(json["measurements"][1]["arrival"], "straggler");
  EXPECT_EQ(json["measurements"][1]["fused"], true);
}

TEST(BenchOutput, TellsInTheTableTheFastestFirst) {
  EXPECT_EQ(
      bench_table(rows()),
      "\n8 cores x 1000 floats, 3 threads, skewed arrival, cold cache; STREAM triad 0.0 GB/s\n\n"
      "strategy                      median         min - max  buffer GB/s  moved GB/s  of triad"
      "  reproducible\n"
      "two-level:hosts=2,inner=ring  125 ms  62.5 ms - 188 ms         0.00           -         -"
      "  no\n"
      "slow                          500 ms   250 ms - 2.00 s         0.00        0.00       2 %"
      "  yes\n");
}

TEST(BenchOutput, MovesColumnsBelowOnANarrowTerminal) {
  const std::string table = bench_table(rows(), {40});
  EXPECT_THAT(table, testing::HasSubstr("\n"
                                        "strategy            median\n"
                                        "two-level:hosts=2,  125 ms\n"
                                        "inner=ring\n"
                                        "slow                500 ms\n"
                                        "\n"
                                        "strategy                   min - max\n"));
}

}  // namespace
}  // namespace rubato::app
