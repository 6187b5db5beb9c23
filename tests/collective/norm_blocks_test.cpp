#include <array>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/numbers/sums.hpp>

#include "support/matchers.hpp"

namespace rubato {
namespace {

TEST(NormBlocks, CoverTheLayersAndCrossNone) {
  const std::array<std::size_t, 4> ends{5000, 5000, 5016, 7064};
  const NormBlocks blocks(ends);
  EXPECT_EQ(blocks.layers(), 4U);
  EXPECT_EQ(blocks.covered(), 7064U);
  std::size_t at = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(blocks[i].begin, at);
    EXPECT_GT(blocks[i].end, at);
    EXPECT_LE(blocks[i].end - at, 2048U);
    const std::size_t layer = blocks[i].layer;
    EXPECT_LE(blocks[i].end, ends.at(layer));
    EXPECT_GE(blocks[i].begin, layer == 0 ? 0 : ends.at(layer - 1));
    at = blocks[i].end;
  }
  EXPECT_EQ(at, 7064U);
  EXPECT_EQ(blocks.size(), 5U);  // 3 of layer 0, none of layer 1, 1 of layer 2, 1 of layer 3
}

TEST(NormBlocks, AreCutOnlyBetweenBlocks) {
  const NormBlocks blocks(std::array<std::size_t, 2>{3000, 3010});
  EXPECT_EQ(blocks.align(0), 0U);
  EXPECT_EQ(blocks.align(1), 2048U);
  EXPECT_EQ(blocks.align(2048), 2048U);
  EXPECT_EQ(blocks.align(2049), 3000U);
  EXPECT_EQ(blocks.align(3001), 3010U);
  EXPECT_EQ(blocks.align(3010), 3010U);
  EXPECT_EQ(blocks.align(4000), 4000U);
  EXPECT_EQ(NormBlocks().align(17), 17U);
}

TEST(NormBlocks, VisitBlocksAndWhatLiesBehind) {
  const NormBlocks blocks(std::array<std::size_t, 2>{3000, 3010});
  std::vector<std::vector<std::size_t>> visits;
  const auto note = [&](std::size_t block, std::size_t begin, std::size_t end) {
    visits.push_back({block, begin, end});
  };
  blocks.for_each_within(2048, 5000, note);
  EXPECT_THAT(visits, ElementsAre(ElementsAre(1, 2048, 3000), ElementsAre(2, 3000, 3010),
                                  ElementsAre(3, 3010, 5000)));
  visits.clear();
  blocks.for_each_within(0, 2048, note);
  EXPECT_THAT(visits, ElementsAre(ElementsAre(0, 0, 2048)));
  visits.clear();
  NormBlocks().for_each_within(3, 9, note);
  EXPECT_THAT(visits, ElementsAre(ElementsAre(0, 3, 9)));
}

TEST(NormBlocks, SumToLayers) {
  const NormBlocks blocks(std::array<std::size_t, 3>{3000, 3000, 3010});
  std::vector<double> layers(3);
  const std::array<double, 3> squares{1, 2, 4};
  sum_squares(blocks, squares, [&](std::size_t layer) -> double& { return layers[layer]; });
  EXPECT_THAT(layers, ElementsAre(3, 0, 4));
}

TEST(NormBlocks, HaveASecondNormWithWeights) {
  NormBlocks blocks(std::array<std::size_t, 2>{2, 4});
  EXPECT_EQ(blocks.squares(), 2U);
  const std::array<double, 4> weights{1, 2, 3, 0};
  blocks.weigh_by(std::span<const double>(weights));
  EXPECT_EQ(blocks.squares(), 4U);
  std::array<double, 4> squares{};
  const std::array<double, 4> values{1, 2, 3, 4};
  for (std::size_t block = 0; block < 2; ++block) {
    blocks.measure(block, std::span<const double>(values).subspan(2 * block, 2),
                   blocks.of_block(block, std::span<double>(squares)));
  }
  EXPECT_THAT(squares, ElementsAre(5, 17, 25, 81));
  std::array<double, 2> layers{};
  sum_squares(
      blocks, squares, [&](std::size_t layer) -> double& { return layers.at(layer); }, 1);
  EXPECT_THAT(layers, ElementsAre(17, 81));
}

}  // namespace
}  // namespace rubato
