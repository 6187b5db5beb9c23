#include "runs/lab/measure.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "support/matchers.hpp"

namespace rubato::lab {
namespace {

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
  FakeContestant contestant({0.5, 0.25, 0.125});
  EXPECT_THAT(measure(contestant, kFakeTask, {.arrival = Arrival::straggler, .seconds = 1e-3},
                      contestant.clock()),
              ElementsAre(0.25, 0.125));
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
  EXPECT_THAT(measure(contestant, kFakeTask, {.seconds = 4}, contestant.clock()), SizeIs(16));
  FakeContestant quick({0x1p-20});
  EXPECT_THAT(measure(quick, kFakeTask, {.seconds = 3600}, quick.clock()), SizeIs(334));
}

TEST(MeasureDeathTest, AbortsWhereTheResultIsWrong) {
  FakeContestant contestant({0.25});
  contestant.error = 1;
  EXPECT_DEATH(static_cast<void>(measure(contestant, kFakeTask, {}, contestant.clock())),
               "only a strategy with a correct result is measured");
}

// What becomes of the turns of all entrants, in their order.
class FakeTurns {
 public:
  // The seconds of the entrant's runs in each of its turns.
  Entrant entrant(const std::string& name, std::vector<std::vector<double>> turns) {
    return {.name = name,
            .take_turn = [this, name, turns = std::move(turns),
                          next = std::size_t{0}](const MeasureOptions& options) mutable {
              log_.push_back(fmt::format("{} has {} s", name, options.seconds));
              return turns.at(next++);
            }};
  }
  OnTurn on_turn() {
    return [this](std::string_view name, int round) {
      log_.push_back(fmt::format("round {}: {}", round, name));
    };
  }
  [[nodiscard]] const std::vector<std::string>& log() const { return log_; }

 private:
  std::vector<std::string> log_;
};

TEST(MeasureInTurn, GivesEachEntrantATurnInEveryRound) {
  FakeTurns turns;
  const std::vector<Entrant> entrants{turns.entrant("a", {{1}, {1}, {1}}),
                                      turns.entrant("b", {{1}, {1}, {1}})};
  static_cast<void>(measure_in_turn(entrants, {.seconds = 6}, turns.on_turn()));
  EXPECT_THAT(turns.log(), ElementsAre("round 1: a", "a has 2 s", "round 1: b", "b has 2 s",  //
                                       "round 2: a", "a has 2 s", "round 2: b", "b has 2 s",  //
                                       "round 3: a", "a has 2 s", "round 3: b", "b has 2 s"));
}

TEST(MeasureInTurn, PoolsTheRunsOfAnEntrant) {
  FakeTurns turns;
  const std::vector<Entrant> entrants{turns.entrant("a", {{4, 5}, {1}, {9, 2}}),
                                      turns.entrant("b", {{7}, {6}, {8}})};
  const auto measured = measure_in_turn(entrants, {}, turns.on_turn());
  ASSERT_THAT(measured, SizeIs(2));
  ASSERT_TRUE(measured[0] && measured[1]);
  EXPECT_EQ(measured[0]->median, 4);
  EXPECT_EQ(measured[0]->min, 1);
  EXPECT_EQ(measured[0]->max, 9);
  EXPECT_EQ(measured[0]->runs, 5);
  EXPECT_EQ(measured[1]->median, 7);
  EXPECT_EQ(measured[1]->runs, 3);
}

TEST(MeasureInTurn, GoesOnWithoutAnEntrantThatFails) {
  FakeTurns turns;
  const std::vector<Entrant> entrants{turns.entrant("fails", {{1}, {}}),
                                      turns.entrant("b", {{1}, {1}, {1}})};
  const auto measured = measure_in_turn(entrants, {.seconds = 3}, turns.on_turn());
  EXPECT_THAT(turns.log(), ElementsAre("round 1: fails", "fails has 1 s", "round 1: b", "b has 1 s",
                                       "round 2: fails", "fails has 1 s", "round 2: b", "b has 1 s",
                                       "round 3: b", "b has 1 s"));
  EXPECT_FALSE(measured[0]);
  EXPECT_TRUE(measured[1]);
}

// Knows how many of its kind there are.
class CountedContestant final : public Contestant {
 public:
  struct Count {
    int alive = 0;
    int most = 0;
    int made = 0;
    double now = 0;
  };

  explicit CountedContestant(Count& count) : count_(count) {
    ++count_.made;
    count_.most = std::max(count_.most, ++count_.alive);
  }
  CountedContestant(const CountedContestant&) = delete;
  CountedContestant& operator=(const CountedContestant&) = delete;
  ~CountedContestant() override { --count_.alive; }

  void prepare() override { contestant_.prepare(); }
  void run(const Arrivals& arrivals) override {
    contestant_.run(arrivals);
    count_.now += 1;
  }
  [[nodiscard]] std::span<const float> result() const override { return contestant_.result(); }
  void fail() { contestant_.error = 1; }

 private:
  Count& count_;
  FakeContestant contestant_{{0}};
};

TEST(Entrants, HaveTheirContestantsInMemoryOneAfterTheOther) {
  CountedContestant::Count count;
  const MakeContestant make = [&] { return std::make_unique<CountedContestant>(count); };
  const Clock clock = [&] { return count.now; };
  const std::vector<Entrant> entrants{entrant("a", make, kFakeTask, clock),
                                      entrant("b", make, kFakeTask, clock)};
  EXPECT_EQ(count.made, 0) << "before its turn";
  const auto measured = measure_in_turn(entrants, {.seconds = 12}, [](std::string_view, int) {});
  EXPECT_EQ(count.made, 2 * kRounds);
  EXPECT_EQ(count.most, 1);
  ASSERT_TRUE(measured[0] && measured[1]);
  EXPECT_EQ(measured[0]->runs, 12) << "four in each round";
  EXPECT_EQ(measured[0]->median, 1);
  EXPECT_EQ(measured[1]->runs, 12);
}

TEST(EntrantsDeathTest, AreCheckedInEveryRound) {
  CountedContestant::Count count;
  const auto turns_of = [&](int wrong) {
    const std::vector<Entrant> entrants{entrant(
        "a",
        [&, wrong] {
          auto contestant = std::make_unique<CountedContestant>(count);
          if (count.made == wrong) contestant->fail();
          return contestant;
        },
        kFakeTask, [&] { return count.now; })};
    static_cast<void>(measure_in_turn(entrants, {}, [](std::string_view, int) {}));
  };
  for (int round = 1; round <= kRounds; ++round) {
    EXPECT_DEATH(turns_of(round), "only a strategy with a correct result is measured") << round;
  }
}

TEST(Environment, NamesTheKernel) {
  const auto all = environment();
  const auto kernel = std::ranges::find(all, "kernel", &decltype(all)::value_type::first);
  ASSERT_NE(kernel, all.end());
  EXPECT_THAT(kernel->second, StartsWith("Linux "));
}

}  // namespace
}  // namespace rubato::lab
