// Warm restarts and one cycle beside torch 1.13.1: the tables are what this program printed, line
// by line.
//
//     import torch
//     from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts, OneCycleLR
//
//     def sgd():
//         return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1, momentum=0.9)
//
//     def restarts(step, **options):
//         optimizer = sgd()
//         scheduler = CosineAnnealingWarmRestarts(optimizer, **options)
//         for i in range(12):
//             scheduler.step(i * step)
//             print(optimizer.param_groups[0]["lr"])
//
//     def cycle(**options):
//         optimizer = sgd()
//         scheduler = OneCycleLR(optimizer, max_lr=1, total_steps=11, **options)
//         for i in range(11):
//             print(optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"])
//             optimizer.step()
//             if i < 10: scheduler.step()
//
//     restarts(1, T_0=3, T_mult=2, eta_min=0.1)
//     restarts(0.75, T_0=4)
//     cycle()
//     cycle(pct_start=0.4, anneal_strategy="linear", three_phase=True, base_momentum=0.8,
//           max_momentum=0.9, div_factor=10, final_div_factor=100)

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/numbers/lr_schedule.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

constexpr double kTolerance = 1e-12;

void expect_restarts(const std::string& text, double step, const std::vector<double>& expected) {
  const auto schedule = ScheduleChoice(text).make({});
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double position = step * static_cast<double>(i);
    EXPECT_NEAR(schedule->factor(position), expected[i], kTolerance) << text << " at " << position;
    EXPECT_FALSE(schedule->momentum(position)) << text;
  }
}

TEST(WarmRestarts, AreThoseOfTorch) {
  expect_restarts(
      "cosine-restarts:first=3,mult=2,floor=0.1", 1,
      {1.0, 0.775, 0.3250000000000001, 1.0, 0.9397114317029974, 0.775, 0.55, 0.3250000000000001,
       0.16028856829700258, 1.0, 0.9846666218300807, 0.9397114317029974});
  expect_restarts(
      "cosine-restarts:first=4", 0.75,
      {1.0, 0.9157348061512727, 0.6913417161825449, 0.4024548389919359, 0.14644660940672627,
       0.009607359798384785, 0.9619397662556434, 0.7777851165098011, 0.5, 0.22221488349019902,
       0.03806023374435663, 0.9903926402016152});
}

TEST(WarmRestarts, HaveNoEnd) {
  const auto growing = ScheduleChoice("cosine-restarts:first=3,mult=2").make({});
  // Before and after 40 periods, 3 (2^40 - 1).
  const double end = 3298534883325;
  EXPECT_LT(growing->factor(end - 1), 1e-12);
  EXPECT_EQ(growing->factor(end), 1);
  const auto constant = ScheduleChoice("cosine-restarts:first=3").make({});
  EXPECT_EQ(constant->factor(3e12), 1);
  EXPECT_NEAR(constant->factor(3e12 + 1.5), 0.5, kTolerance);
}

struct Values {
  double factor = 0;
  double momentum = 0;
};

void expect_cycle(const std::string& text, const std::vector<Values>& expected) {
  const auto schedule = ScheduleChoice(text).make({});
  double position = 0;
  for (const Values& values : expected) {
    EXPECT_NEAR(schedule->factor(position), values.factor, kTolerance) << text << position;
    EXPECT_NEAR(schedule->momentum(position).value(), values.momentum, kTolerance)
        << text << position;
    ++position;
  }
  // It stays as it ended.
  EXPECT_EQ(schedule->factor(position), schedule->factor(position - 1));
  EXPECT_EQ(schedule->momentum(1000 * position), schedule->momentum(position - 1));
}

// 11 steps: the last of them is at 10, and the peak at 0.3 x 11 - 1 and 0.4 x 11 - 1.
TEST(OneCycle, IsThatOfTorch) {
  expect_cycle("one-cycle:total=10,peak=2.3", {{0.040000000000000036, 0.95},
                                               {0.4223411137347358, 0.9101728006526316},
                                               {0.9602614247226174, 0.8541394349247273},
                                               {0.9797465678213015, 0.8520253513192751},
                                               {0.8844757247686303, 0.8615524737330319},
                                               {0.7260870492975283, 0.8773914046358657},
                                               {0.5305827080875998, 0.8969419169589078},
                                               {0.3300580289872949, 0.9169944650791307},
                                               {0.15743251279950787, 0.9342570857483922},
                                               {0.041045543206290856, 0.9458958292626879},
                                               {4e-06, 0.95}});
  expect_cycle(
      "one-cycle:total=10,peak=3.4,anneal=linear,three-phase=true,base-momentum=0.8,"
      "max-momentum=0.9,start=0.1,floor=0.001",
      {{0.1, 0.9},
       {0.3647058823529411, 0.8705882352941177},
       {0.6294117647058822, 0.8411764705882353},
       {0.8941176470588234, 0.8117647058823529},
       {0.8411764705882354, 0.8176470588235294},
       {0.5764705882352943, 0.8470588235294118},
       {0.31176470588235305, 0.8764705882352941},
       {0.09381250000000002, 0.9},
       {0.06287500000000001, 0.9},
       {0.03193750000000001, 0.9},
       {0.0010000000000000009, 0.9}});
}

TEST(OneCycle, HasItsPeakAtThreeTenthsUnlessToldOtherwise) {
  const auto schedule = ScheduleChoice("one-cycle:total=50").make({});
  EXPECT_EQ(schedule->factor(15), 1);
  EXPECT_EQ(schedule->momentum(15), 0.85);
}

TEST(OneCycle, MayLeaveTheMomentumAlone) {
  const auto schedule = ScheduleChoice("one-cycle:total=50,cycle-momentum=false").make({});
  EXPECT_EQ(schedule->factor(15), 1);
  EXPECT_FALSE(schedule->momentum(15));
}

TEST(OneCycle, KeepsItsMomentumInAChain) {
  const auto schedule =
      ScheduleChoice("warmup:length=10+one-cycle:total=40,peak=10,after=10").make({});
  for (const double position : {0., 5., 10.}) EXPECT_EQ(schedule->momentum(position), 0.95);
  EXPECT_EQ(schedule->momentum(20), 0.85);
}

TEST(OneCycle, RefusesWhatIsWrong) {
  const auto error = [](std::string_view text) {
    return error_of([&] { return ScheduleChoice(text).make({}); });
  };
  EXPECT_EQ(error("one-cycle"), "one-cycle needs a 'total'; accepted: one-cycle:total=90");
  EXPECT_EQ(error("one-cycle:total=9,peak=9"),
            "one-cycle: peak: 9 is too late in a cycle of 9; accepted: less than that");
  EXPECT_EQ(error("one-cycle:total=9,peak=5,three-phase=true"),
            "one-cycle: peak: 5 is too late in a cycle of 9; accepted: at most its half");
  EXPECT_THAT(error("one-cycle:total=9,max-momentum=1"), HasSubstr("a number from 0 to below 1"));
  EXPECT_THAT(error("one-cycle:total=9,cycle-momentum=false,max-momentum=0.9"),
              HasSubstr("does nothing with cycle-momentum=false; accepted: without that"));
  EXPECT_EQ(error("one-cycle:total=9+one-cycle:total=9,after=9"),
            "two parts of the schedule set the momentum; accepted: one of them, as one-cycle does "
            "not with cycle-momentum=false");
  EXPECT_THAT(error("cosine-restarts:first=9,mult=0"), HasSubstr("mult: '0' is out of range"));
}

}  // namespace
}  // namespace rubato
