#include "lab/measure.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

namespace rubato::lab {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr ReduceTask kFakeTask{.cores = 5, .size = 40};

// Comes to the right sum in a time of its own, from the last arrival on; the clock is its own, too.
// All times are small multiples of a power of two, so that sums of them are exact.
class FakeContestant final : public Contestant {
 public:
  explicit FakeContestant(std::vector<double> seconds) : seconds_(std::move(seconds)) {}

  void prepare() override { ++prepared_; }
  void run(const Arrivals& arrivals) override {
    EXPECT_EQ(prepared_, static_cast<int>(arrivals_.size()) + 1) << "each run on fresh buffers";
    const double own = seconds_[std::min(arrivals_.size(), seconds_.size() - 1)];
    now_ += *std::max_element(arrivals.begin(), arrivals.end()) + own;
    arrivals_.push_back(arrivals);
    for (std::size_t k = 0; k < kFakeTask.size; ++k) {
      sum_.at(k) = 0;
      for (std::int64_t core = 0; core < kFakeTask.cores; ++core) sum_.at(k) += payload(core, k);
    }
    sum_.back() += error;
  }
  [[nodiscard]] std::span<const float> result() const override { return sum_; }
  [[nodiscard]] double bytes_moved() const override { return 0; }

  [[nodiscard]] Clock clock() {
    return [this] { return now_; };
  }
  /// Of every run so far.
  [[nodiscard]] const std::vector<Arrivals>& arrivals() const { return arrivals_; }

  float error = 0;

 private:
  std::vector<double> seconds_;
  std::vector<float> sum_ = std::vector<float>(kFakeTask.size);
  std::vector<Arrivals> arrivals_;
  int prepared_ = 0;
  double now_ = 0;
};

TEST(Measure, CountsFromTheLastArrival) {
  // The first run is not measured, but says how long the last buffer is waited for.
  FakeContestant contestant({0.5, 0.25, 0.125, 0.75, 0.375, 0.25});
  const Measurement measurement = measure(
      contestant, kFakeTask, {.arrival = Arrival::straggler, .seconds = 1e-3}, contestant.clock());
  EXPECT_EQ(measurement.runs, 5);
  EXPECT_EQ(measurement.min, 0.125);
  EXPECT_EQ(measurement.median, 0.25);
  EXPECT_EQ(measurement.max, 0.75);
}

TEST(Measure, LetsTheBuffersArriveAsAskedFor) {
  const auto arrivals_of_runs = [](Arrival arrival, double once) {
    FakeContestant contestant({once});
    static_cast<void>(
        measure(contestant, kFakeTask, {.arrival = arrival, .seconds = 1e-3}, contestant.clock()));
    EXPECT_THAT(contestant.arrivals().front(), Each(0.0)) << "the first run finds out";
    for (const Arrivals& arrivals : contestant.arrivals()) {
      if (&arrivals == &contestant.arrivals().front()) continue;
      EXPECT_EQ(arrivals, contestant.arrivals().back());
    }
    return contestant.arrivals().back();
  };
  EXPECT_THAT(arrivals_of_runs(Arrival::simultaneous, 0.5), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(arrivals_of_runs(Arrival::straggler, 0.5), ElementsAre(0, 0, 0, 0, 1));
  EXPECT_THAT(arrivals_of_runs(Arrival::skewed, 0.5), ElementsAre(0, 0.25, 0.5, 0.75, 1));
  // However short the task, the last buffer is waited for.
  EXPECT_THAT(arrivals_of_runs(Arrival::straggler, 0x1p-20), ElementsAre(0, 0, 0, 0, 1e-3));
}

TEST(Measure, RunsForAsLongAsAskedFor) {
  FakeContestant contestant({0.25});
  EXPECT_EQ(measure(contestant, kFakeTask, {.seconds = 4}, contestant.clock()).runs, 16);
  FakeContestant quick({0x1p-20});
  EXPECT_EQ(measure(quick, kFakeTask, {.seconds = 3600}, quick.clock()).runs, 1000);
}

TEST(MeasureDeathTest, AbortsWhereTheResultIsWrong) {
  FakeContestant contestant({0.25});
  contestant.error = 1;
  EXPECT_DEATH(static_cast<void>(measure(contestant, kFakeTask, {}, contestant.clock())),
               "only measured when its result is right");
}

TEST(Measure, TheClockGoesForward) {
  const double before = steady_seconds();
  EXPECT_GE(steady_seconds(), before);
}

}  // namespace
}  // namespace rubato::lab
