#include <gmock/gmock.h>

#include "runs/experiment/conduct/conduct.hpp"
#include "runs/experiment/design/design.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

constexpr auto kText = HyperparameterType::text;
constexpr auto kNumber = HyperparameterType::number;
using Column = HyperparameterColumn;

Design small_design() {
  Design design;
  design.base.model = "softmax";
  set_values(design, "rule", {"linear", "root"});
  set_values(design, "seed", {"1", "2"});
  return design;
}

TEST(TensorBoardColumns, AreTraceRuleAndSeedAtLeast) {
  const TensorBoardColumns columns =
      tensorboard_columns(plan_of(small_design()), "", Measure{.is_accuracy = true});
  EXPECT_THAT(columns.hyperparameters,
              ElementsAre(Column{"trace", kText}, Column{"rule", kText}, Column{"seed", kNumber}));
  EXPECT_THAT(columns.metrics, ElementsAre("test/accuracy", "test/loss"));
}

TEST(TensorBoardColumns, AreTheAxesAndWhatIsTuned) {
  Design design = small_design();
  set_values(design, "momentum", {"0.5", "0.9"});
  set_values(design, "nesterov", {"true", "false"});
  set_values(design, "threads", {"1", "2"});
  const ExperimentPlan plan = plan_of(design);
  EXPECT_THAT(tensorboard_columns(plan, "lr", Measure{.is_accuracy = false}).hyperparameters,
              ElementsAre(Column{"trace", kText}, Column{"rule", kText},
                          Column{"momentum", kNumber}, Column{"nesterov", HyperparameterType::flag},
                          Column{"lr", kNumber}, Column{"seed", kNumber}))
      << "no run says with how many threads";
  EXPECT_THAT(
      tensorboard_columns(plan, "momentum", Measure{}).hyperparameters,
      ElementsAre(Column{"trace", kText}, Column{"rule", kText}, Column{"momentum", kNumber},
                  Column{"nesterov", HyperparameterType::flag}, Column{"seed", kNumber}))
      << "once";
}

TEST(TensorBoardColumns, HaveTheClockWhereThereIsOne) {
  Design design = small_design();
  design.base.clock = Clock::modelled;
  const Measure loss{.is_accuracy = false};
  EXPECT_THAT(tensorboard_columns(plan_of(design), "", loss).metrics,
              ElementsAre("test/loss", "clock/hours"));
  design.base.price = "2";
  EXPECT_THAT(tensorboard_columns(plan_of(design), "", loss).metrics,
              ElementsAre("test/loss", "clock/hours", "clock/money"));
}

}  // namespace
}  // namespace rubato
