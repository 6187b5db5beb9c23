// When a metric has stopped improving.

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include <rubato/base/state.hpp>
#include <rubato/loop/observers.hpp>

#include "support/error_of.hpp"
#include "support/no_training.hpp"

namespace rubato {
namespace {

TEST(Patience, ExactlyDeltaIsNoImprovement) {
  for (const MetricMode mode : {MetricMode::max, MetricMode::min}) {
    const double sign = mode == MetricMode::max ? 1 : -1;
    Patience patience({.patience = 2, .delta = 0.25, .mode = mode});
    EXPECT_FALSE(patience.is_over_after(sign * 1.0));
    EXPECT_TRUE(patience.improved());
    EXPECT_FALSE(patience.is_over_after(sign * 1.25));
    EXPECT_FALSE(patience.improved());
    EXPECT_EQ(patience.best(), sign * 1.0);
    EXPECT_TRUE(patience.is_over_after(sign * 1.25)) << "counted from the best, not from the last";
  }
}

TEST(Patience, IsCheckedAtItsBorders) {
  EXPECT_EQ(error_of([] { return Patience({.patience = 0}); }), "patience 0: at least 1 is needed");
  EXPECT_EQ(error_of([] { return Patience({.delta = -1}); }),
            "delta -1 of a metric: accepted are values of at least 0");
}

TEST(Patience, TakesNothingForBetterThatIsNotFinite) {
  for (const MetricMode mode : {MetricMode::max, MetricMode::min}) {
    Patience patience({.patience = 9, .mode = mode});
    for (const double value : {std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(), std::nan("")}) {
      EXPECT_FALSE(patience.is_over_after(value));
      EXPECT_FALSE(patience.improved());
    }
    EXPECT_FALSE(patience.is_over_after(1));
    EXPECT_TRUE(patience.improved());
    EXPECT_FALSE(patience.is_over_after(std::numeric_limits<double>::infinity()));
    EXPECT_EQ(patience.best(), 1);
  }
}

// Hears that it is to stop.
class Stoppable final : public test::NoTraining {
 public:
  void stop(std::string reason) override { reason_ = std::move(reason); }
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};

EpochRecord epoch_of(double test_loss) {
  return {.epoch = {}, .test = Evaluation{.samples = 1, .loss = test_loss}};
}

TEST(EarlyStopping, AResumeRemembersHowLongItHasWaited) {
  Stoppable training;
  EarlyStopping before(Metric::test_loss, {.patience = 3});
  for (const double loss : {2.0, 1.0, 1.5, 1.5}) before.on_epoch(training, epoch_of(loss));
  EXPECT_EQ(training.reason(), "");
  const State state = state_of(before, training);
  EarlyStopping after(Metric::test_loss, {.patience = 3});
  load_state(after, state, training);
  after.on_epoch(training, epoch_of(1.2));
  EXPECT_EQ(training.reason(), "test-loss no longer improves");
}

}  // namespace
}  // namespace rubato
