#include <cstdint>
#include <memory>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using Dataset = DenseDataset<float>;

TEST(DenseDataset, HoldsRowsAndClasses) {
  const auto data = Dataset::classified({1, 2, 3, 4, 5, 6}, {1, 0}, 4);
  EXPECT_EQ(data.samples(), 2);
  EXPECT_EQ(data.features(), 3);
  EXPECT_EQ(data.outputs(), 4);
  EXPECT_TRUE(data.is_classified());
  EXPECT_THAT(data.inputs(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(data.classes(), ElementsAre(1, 0));
  EXPECT_THAT(data.targets(), IsEmpty());
}

TEST(DenseDataset, BorrowsRowsAndKeepsTheirOwner) {
  auto rows = std::make_shared<const std::vector<float>>(std::vector<float>{1, 2, 3, 4});
  const auto data = Dataset::classified(BorrowedRows<float>(*rows, rows), {1, 0}, 2);
  EXPECT_EQ(data.inputs().data(), rows->data());
  EXPECT_EQ(data.fingerprint(), Dataset::classified({1, 2, 3, 4}, {1, 0}, 2).fingerprint());
  const std::weak_ptr<const std::vector<float>> owner = rows;
  rows.reset();
  EXPECT_FALSE(owner.expired());
  EXPECT_THAT(data.inputs(), ElementsAre(1, 2, 3, 4));
}

TEST(DenseDataset, HoldsRowsAndTargets) {
  const auto data = Dataset::with_targets({1, 2, 3}, {1, 2, 3, 4, 5, 6}, 2);
  EXPECT_EQ(data.samples(), 3);
  EXPECT_EQ(data.features(), 1);
  EXPECT_EQ(data.outputs(), 2);
  EXPECT_FALSE(data.is_classified());
  EXPECT_THAT(data.targets(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(data.classes(), IsEmpty());
}

TEST(DenseDataset, SaysWhatDoesNotFit) {
  const auto classified = [](const std::vector<float>& inputs,
                             const std::vector<std::int64_t>& classes, std::int64_t count) {
    return error_of([&] { return Dataset::classified(inputs, classes, count); });
  };
  EXPECT_THAT(classified({1, 2, 3}, {0, 1}, 2),
              HasSubstr("3 input values for 2 samples; accepted: rows of equal length, 2, 4, 6"));
  EXPECT_THAT(classified({}, {0, 1}, 2), HasSubstr("0 input values for 2 samples"));
  EXPECT_THAT(classified({}, {}, 2), HasSubstr("no sample; accepted: at least one"));
  EXPECT_THAT(classified({1, 2}, {0, 1}, 0), HasSubstr("0 classes; accepted: at least 1"));
  EXPECT_THAT(classified({1, 2}, {0, 2}, 2), HasSubstr("sample 2 is of class 2; accepted: 0 to 1"));
  EXPECT_THAT(classified({1, 2}, {-1, 0}, 2), HasSubstr("sample 1 is of class -1"));
  const auto with_targets = [](const std::vector<float>& targets, std::int64_t outputs) {
    return error_of([&] { return Dataset::with_targets({1, 2}, targets, outputs); });
  };
  EXPECT_THAT(with_targets({1, 2, 3}, 2),
              HasSubstr("3 targets, 2 for each sample; accepted: at least 1 for each"));
  EXPECT_THAT(with_targets({1, 2}, 0), HasSubstr("2 targets, 0 for each sample"));
  EXPECT_THAT(with_targets({}, 1), HasSubstr("no sample"));
}

TEST(DenseDataset, IsKnownByAllThatItHolds) {
  const auto fingerprint = [](std::vector<float> inputs, std::vector<std::int64_t> classes,
                              std::int64_t count) {
    return Dataset::classified(std::move(inputs), std::move(classes), count).fingerprint();
  };
  const std::string expected = fingerprint({1, 2}, {0, 1}, 2);
  EXPECT_EQ(expected.size(), 64U);
  EXPECT_EQ(fingerprint({1, 2}, {0, 1}, 2), expected);
  EXPECT_NE(fingerprint({1, 3}, {0, 1}, 2), expected);
  EXPECT_NE(fingerprint({1, 2}, {1, 0}, 2), expected);
  EXPECT_NE(fingerprint({1, 2}, {0, 1}, 3), expected);
  EXPECT_NE(Dataset::with_targets({1, 2}, {0, 1}).fingerprint(), expected);
  EXPECT_NE(DenseDataset<double>::classified({1, 2}, {0, 1}, 2).fingerprint(), expected);
  const auto copied = Dataset::with_targets({1, 2}, {0, 1});
  const Dataset copy = copied;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(&copy.fingerprint(), &copied.fingerprint()) << "computed once";
}

TEST(DenseDataset, NormalisesPixelsInDoubleAndRoundsThem) {
  const ImageSet images{
      .count = 2, .height = 1, .width = 2, .pixels = {0, 255, 51, 102}, .labels = {3, 9}};
  const PixelStatistics statistics{.mean = 0.1, .deviation = 0.3};
  const auto rows = to_rows<float>(images, statistics);
  EXPECT_EQ(rows.features(), 2);
  EXPECT_EQ(rows.outputs(), 10);
  EXPECT_THAT(rows.classes(), ElementsAre(3, 9));
  const auto normalised = [](int pixel) { return static_cast<float>((pixel / 255.0 - 0.1) / 0.3); };
  EXPECT_THAT(rows.inputs(),
              ElementsAre(normalised(0), normalised(255), normalised(51), normalised(102)));
  EXPECT_THAT(to_rows<double>(images, statistics).inputs(),
              ElementsAre(normalised(0), normalised(255), normalised(51), normalised(102)));
  EXPECT_THAT(error_of([&] { return to_rows<float>(images, statistics, 9); }),
              HasSubstr("sample 2 is of class 9; accepted: 0 to 8"));
}

TEST(DenseDataset, HasZerosForPixelsThatAreAllTheSame) {
  const ImageSet images{.count = 1, .height = 1, .width = 2, .pixels = {7, 7}, .labels = {0}};
  EXPECT_THAT(to_rows<float>(images, pixel_statistics(images)).inputs(), ElementsAre(0, 0));
}

}  // namespace
}  // namespace rubato
