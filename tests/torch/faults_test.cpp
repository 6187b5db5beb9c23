#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "base/core/seconds.hpp"
#include "networks.hpp"
#include "support.hpp"
#include "support/error_of.hpp"

namespace rubato {
namespace {

using test::error_of;
using testing::HasSubstr;

// Counts the deaths, and what became of the steps.
class Faults : public test::Recorder {
 public:
  void on_fault(Training&, const StepPlan& step, std::span<const FaultRecord> faults,
                std::int64_t cores_left) override {
    for (const FaultRecord& fault : faults) {
      heard.push_back({fault.core, step.index, fault.substep});
      EXPECT_LT(fault.core.value(), step.cores);
    }
    EXPECT_GE(cores_left, 1);
    EXPECT_EQ(cores_left,
              std::max<std::int64_t>(1, step.cores - static_cast<std::int64_t>(faults.size())));
  }
  std::vector<Fault> heard;
};

std::string train(TrainOptions options, const std::shared_ptr<Faults>& faults) {
  options.minibatch_size = 8;
  options.reference_batch_size = 32;
  options.epochs = 1;
  options.rule = "adascale";
  TorchTrainer trainer(model_factory<test::DropoutNet>(), nll_loss(), test::digits(350),
                       test::trace_of({8, 104, 24, 192, 16}, TraceEnd::cycle), options);
  trainer.add_observer(faults);
  trainer.fit();
  return test::state_bytes(trainer);
}

TEST(Faults, ChangeNoBit) {
  const auto none = std::make_shared<Faults>();
  const std::string expected = train({.threads = 2}, none);
  EXPECT_TRUE(none->heard.empty());
  for (const int threads : {1, 3}) {
    for (const std::string reduce : {"tree", "chunked-tree", "sharded"}) {
      const auto faults = std::make_shared<Faults>();
      const std::vector<Fault> planned{{CoreRank{2}, StepIndex{1}, 1},
                                       {CoreRank{4}, StepIndex{1}, 0},
                                       {CoreRank{0}, StepIndex{3}, 5}};
      EXPECT_TRUE(train({.reduce = reduce, .faults = {.planned = planned}, .threads = threads},
                        faults) == expected);
      EXPECT_EQ(faults->heard.size(), 3);
      // The last has no sixth substep: it dies in its last one.
      EXPECT_EQ(faults->heard.back(), (Fault{CoreRank{0}, StepIndex{3}, 2}));
      EXPECT_EQ(faults->steps[1].plan.cores, 6);
      EXPECT_EQ(faults->steps[2].plan.cores, 8) << "as many as the trace says, again";
      EXPECT_EQ(faults->steps[3].plan.cores, 7);
    }
  }
}

TEST(Faults, OfAnIdleCoreAreNotMissed) {
  const auto faults = std::make_shared<Faults>();
  // The first step has one minibatch.
  train({.faults = {.planned = {{CoreRank{5}, StepIndex{0}, 0}}}, .threads = 2}, faults);
  EXPECT_TRUE(faults->heard.empty());
}

TEST(Faults, AtRandomAreTheSameForEverySeed) {
  const auto none = std::make_shared<Faults>();
  const std::string expected = train({.threads = 2}, none);
  const auto with = [&](double rate, std::uint64_t seed, int threads) {
    const auto faults = std::make_shared<Faults>();
    EXPECT_TRUE(train({.faults = {.rate = rate, .seed = seed}, .threads = threads}, faults) ==
                expected);
    return faults->heard;
  };
  const std::vector<Fault> some = with(0.3, 1, 1);
  EXPECT_GT(some.size(), 3);
  EXPECT_EQ(with(0.3, 1, 3), some);
  EXPECT_NE(with(0.3, 2, 1), some);
  // All but one die, and the last one often.
  EXPECT_GT(with(0.9, 1, 2).size(), some.size());
}

TEST(Stragglers, ChangeNoBitButTime) {
  const auto plain = std::make_shared<Faults>();
  const std::string expected = train({.cores = 2, .threads = 1}, plain);
  const auto slow = std::make_shared<Faults>();
  EXPECT_TRUE(train({.cores = 2, .stragglers = {{.core = CoreRank{1}, .factor = 50}}, .threads = 1},
                    slow) == expected);
  const auto compute = [](const Faults& run) {
    double seconds = 0;
    for (const StepRecord& step : run.steps) seconds += step.seconds.compute;
    return seconds;
  };
  // Half of the substeps take 50 times as long; a tenth of that is seen on any machine.
  EXPECT_GT(compute(*slow), 3 * compute(*plain));
  EXPECT_THAT(error_of([] {
                const auto none = std::make_shared<Faults>();
                train({.stragglers = {{.core = CoreRank{0}, .factor = 0.5}}, .threads = 1}, none);
              }),
              HasSubstr("factor 0.5"));
}

TEST(Exact, RefusesAReducerThatIsNot) {
  const auto none = std::make_shared<Faults>();
  EXPECT_THAT(error_of([&] { train({.reduce = "ring", .threads = 1}, none); }),
              HasSubstr("reducer ring does not give the same bits"));
  EXPECT_EQ(error_of([&] { train({.reduce = "ring", .exact = false, .threads = 1}, none); }),
            "no error");
}

}  // namespace
}  // namespace rubato
