#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/error.hpp>

#include "recorded/lines.hpp"
#include "runs/recorded/plot.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using testing::ThrowsMessage;

TEST(CurveColumn, IsThatOfARecord) {
  EXPECT_FALSE(curve_column("loss").of_epochs);
  EXPECT_TRUE(curve_column("train_loss").of_epochs);
  EXPECT_EQ(curve_column("accuracy").info.name, "test_accuracy");
  EXPECT_EQ(curve_column("accuracy").label(), "test_accuracy, %");
  EXPECT_EQ(curve_column("seconds.wall").info.name, "wall_seconds");
  EXPECT_EQ(curve_column("wall_seconds").label(), "wall_seconds, seconds");
  EXPECT_EQ(curve_column("lr").label(), "lr");
}

TEST(CurveColumn, IsANumber) {
  EXPECT_THAT([] { static_cast<void>(curve_column("acuracy")); },
              ThrowsMessage<Error>(AllOf(HasSubstr("unknown column 'acuracy'"),
                                         HasSubstr("test_accuracy"), HasSubstr("noise_scale"))));
  EXPECT_THROW(static_cast<void>(curve_column("applied")), Error) << "true or false";
  EXPECT_THROW(static_cast<void>(curve_column("substeps")), Error) << "several";
}

class RecordedCurveTest : public testing::Test {
 protected:
  RecordedCurveTest() {
    folder_.write("metrics.jsonl",
                  test::step_line(0, 0, 2) + test::step_line(1, 0, 1) +
                      test::epoch_line(0, 2, 0.5) + test::step_line(2, 1, 0.5) +
                      R"({"kind":"step","step":3,"epoch":1,"batch":32,"cores":1,"loss":null,)" +
                      R"("clock":{"hours":1.5,"money":2.5}})" + "\n" +
                      test::epoch_line(1, 2, 0.75) + R"({"kind":"step","st)");
  }
  [[nodiscard]] std::vector<PlotPoint> curve(std::string_view name, CurveOver over) const {
    return recorded_curve(folder_.path(), curve_column(name), over);
  }

  test::TempFolder folder_;
};

TEST_F(RecordedCurveTest, IsOverSamplesOrSteps) {
  EXPECT_THAT(curve("accuracy", CurveOver::samples),
              ElementsAre(PlotPoint{128, 50}, PlotPoint{224, 75}));
  EXPECT_THAT(curve("accuracy", CurveOver::steps), ElementsAre(PlotPoint{2, 50}, PlotPoint{4, 75}));
  const auto loss = curve("loss", CurveOver::samples);
  ASSERT_EQ(loss.size(), 4U);
  EXPECT_EQ(loss[2], (PlotPoint{192, 0.5}));
  EXPECT_TRUE(std::isnan(loss[3].y)) << "a gap";
}

TEST_F(RecordedCurveTest, IsOverModelledTimeWhereThereIsSome) {
  const auto cores = curve("cores", CurveOver::hours);
  EXPECT_THAT(cores, ElementsAre(PlotPoint{1.5, 1}));
  EXPECT_THAT(curve("cores", CurveOver::money), ElementsAre(PlotPoint{2.5, 1}));
}

TEST_F(RecordedCurveTest, HasNoPointsOfWhatWasNotMeasured) {
  EXPECT_THAT(curve("noise_scale", CurveOver::samples), ElementsAre());
  EXPECT_THAT(curve("wall_seconds", CurveOver::steps).size(), 3);
}

TEST_F(RecordedCurveTest, SaysWhereItIsNone) {
  folder_.write("metrics.jsonl", "\n");
  EXPECT_THAT([&] { static_cast<void>(curve("loss", CurveOver::steps)); },
              ThrowsMessage<Error>(HasSubstr(
                  "metrics.jsonl:1: is not a line of metrics; accepted: what a run has ")));
  folder_.write("metrics.jsonl", R"({"kind":"step","step":0,"batch":1,"loss":"low"})"
                                 "\n");
  EXPECT_THAT([&] { static_cast<void>(curve("loss", CurveOver::steps)); },
              ThrowsMessage<Error>(HasSubstr("metrics.jsonl:1: loss is \"low\"; accepted: ")));
}

}  // namespace
}  // namespace rubato
