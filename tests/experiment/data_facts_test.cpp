#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runs/experiment/conduct/run_result.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

// Which samples are held out decides how many of them are of the largest class.
TEST(DataFacts, AreThoseOfTheSamplesThatAreHeldOut) {
  const test::TempFolder folder;
  std::string rows = "x,y\n";
  for (int i = 0; i < 40; ++i) rows += fmt::format("{}.5,{}\n", i, i % 10 < 7 ? "a" : "b");
  RunConfiguration configuration;
  configuration.model = "softmax";
  configuration.data = fmt::format("csv:{},label=y", folder.write("d.csv", rows).string());
  DataFacts facts;
  std::set<double> shares;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    configuration.validation = HeldOut{.share = 0.25, .seed = seed};
    const double chance = facts.measure_of(configuration).chance;
    EXPECT_EQ(chance, DataFacts().measure_of(configuration).chance) << seed;
    shares.insert(chance);
  }
  EXPECT_GT(shares.size(), 1U);
}

}  // namespace
}  // namespace rubato
