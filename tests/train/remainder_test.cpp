// Remainder::carry: in n epochs every sample is seen n times, whatever the trace.

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/state.hpp>
#include <rubato/steps/random.hpp>
#include <rubato/testing.hpp>

#include "support/changed_state.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/recorded.hpp"
#include "train/around.hpp"

namespace rubato {
namespace {

using test::tiny_objective;
using test::trace_of;

// Of each minibatch that was trained, its samples: once, however often it was done again.
class Seen {
 public:
  void note(const Minibatch& minibatch) {
    const std::scoped_lock lock(mutex_);
    const StreamKey& key = minibatch.stream;
    const std::vector<std::int64_t> samples(minibatch.samples.begin(), minibatch.samples.end());
    const auto [found, is_new] =
        minibatches_.emplace(std::tuple(key.step, key.epoch, key.minibatch), samples);
    if (!is_new) {
      EXPECT_EQ(found->second, samples) << "the same minibatch has the same samples";
    }
  }
  // How often each sample was seen.
  [[nodiscard]] std::vector<std::int64_t> counts(std::int64_t samples) const {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(samples));
    for (const auto& [key, of_minibatch] : minibatches_) {
      for (const std::int64_t sample : of_minibatch) ++counts.at(static_cast<std::size_t>(sample));
    }
    return counts;
  }
  // In the order of training.
  [[nodiscard]] std::vector<std::int64_t> all() const {
    std::vector<std::int64_t> all;
    for (const auto& [key, of_minibatch] : minibatches_) {
      all.insert(all.end(), of_minibatch.begin(), of_minibatch.end());
    }
    return all;
  }

 private:
  std::mutex mutex_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::vector<std::int64_t>>
      minibatches_;
};

class CountingObjective final : public test::Around {
 public:
  CountingObjective(std::int64_t samples, std::shared_ptr<Seen> seen)
      : Around(
            [seen = std::move(seen)](auto& inner, const auto& minibatch, const auto& leaf,
                                     auto& progress) {
              seen->note(minibatch);
              return inner.evaluate(minibatch, leaf, progress);
            },
            tiny_objective(samples)) {}
  bool has_test() const override { return true; }
  Evaluation test(Workers& workers, const EvaluationOptions& options,
                  std::string_view when) override {
    return inner().test(workers, options, when);
  }
};

TrainOptions carry_options(std::int64_t epochs) {
  return {.epochs = epochs,
          .minibatch_size = 4,
          .remainder = Remainder::carry,
          .learning_rate = 0.02,
          .reference_batch_size = 8,
          .rule = "adascale",
          .schedule = "cosine:total=9",
          .cores = 3,
          .threads = 2};
}

struct CarryCase {
  std::string what;
  std::int64_t samples = 48;
  std::vector<std::int64_t> rows;
};

const std::vector<CarryCase>& carry_cases() {
  static const std::vector<CarryCase> cases{
      {"fits", 48, {16, 8, 24}},
      {"does not fit", 48, {20, 28, 12}},
      {"nearly an epoch", 48, {44}},
      {"an epoch", 48, {48}},
      {"more than an epoch", 48, {64, 4, 52}},
      {"several epochs", 48, {8, 160, 4}},
      {"a rest of two", 50, {20, 28, 12}},
      {"a rest of three", 47, {8, 16, 44, 4}},
      {"several epochs with a rest", 49, {8, 160, 4}},
      {"far more than all epochs", 50, {4000}},
  };
  return cases;
}

Trainer carry_trainer(const CarryCase& of, const TrainOptions& options,
                      std::shared_ptr<Seen> seen = std::make_shared<Seen>()) {
  return Trainer(std::make_unique<CountingObjective>(of.samples, std::move(seen)),
                 trace_of(of.rows), options);
}

// Each sample once in each of the epochs.
void expect_all_seen(const CarryCase& of, const Seen& seen, std::int64_t epochs,
                     std::uint64_t seed) {
  SCOPED_TRACE(of.what);
  std::vector<std::int64_t> expected;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto order = random_permutation(of.samples, seed + static_cast<std::uint64_t>(epoch));
    expected.insert(expected.end(), order.begin(), order.end());
  }
  EXPECT_EQ(seen.all(), expected);
  EXPECT_THAT(seen.counts(of.samples), Each(epochs));
}

TEST(Carry, ShowsEverySampleOnceInEachEpoch) {
  for (const CarryCase& of : carry_cases()) {
    for (const std::int64_t epochs : {1, 2, 3, 4}) {
      const auto seen = std::make_shared<Seen>();
      const TrainOptions options = carry_options(epochs);
      Trainer trainer = carry_trainer(of, options, seen);
      const auto recorder = trainer.add_observer<test::Recorder>();
      const TrainResult result = trainer.fit();
      expect_all_seen(of, *seen, epochs, options.seed);
      EXPECT_EQ(result.epochs, epochs) << of.what;
      EXPECT_EQ(result.part.has_value(), false);
      EXPECT_EQ(result.samples, epochs * of.samples);
      ASSERT_EQ(recorder->epochs.size(), static_cast<std::size_t>(epochs)) << of.what;
      std::int64_t steps = 0;
      for (const EpochRecord& epoch : recorder->epochs) {
        EXPECT_EQ(epoch.samples, of.samples) << of.what;
        EXPECT_TRUE(epoch.whole);
        EXPECT_TRUE(std::isfinite(epoch.train_loss));
        EXPECT_TRUE(epoch.test.has_value());
        steps += epoch.steps;
      }
      EXPECT_EQ(steps, result.steps) << of.what;
    }
  }
}

TEST(Carry, LosesNothingThroughAResumeAfterEveryStepAndEpoch) {
  class HopEverywhere final : public Observer {
   public:
    void on_step(Training& training, const StepRecord&) override { training.pause(); }
    void on_epoch(Training& training, const EpochRecord&) override { training.pause(); }
  };
  for (const CarryCase& of : carry_cases()) {
    SCOPED_TRACE(of.what);
    const TrainOptions options = carry_options(3);
    Trainer whole = carry_trainer(of, options);
    const auto all = test::recorded(whole);
    const auto seen = std::make_shared<Seen>();
    const auto rest = std::make_shared<test::Recorder>();
    State state = carry_trainer(of, options).state();
    while (true) {
      Trainer trainer = carry_trainer(of, options, seen);
      trainer.add_observer<HopEverywhere>();
      trainer.add_observer(rest);
      trainer.load_state(state);
      if (trainer.fit().epochs == 3) {
        EXPECT_EQ(test::difference_of(whole, trainer), std::nullopt);
        break;
      }
      state = parse_state(state_bytes(trainer.state()), "the state");
    }
    expect_all_seen(of, *seen, 3, options.seed);
    ASSERT_EQ(rest->steps.size(), all->steps.size());
    ASSERT_EQ(rest->epochs.size(), all->epochs.size());
    for (std::size_t i = 0; i < rest->steps.size(); ++i) {
      EXPECT_EQ(rest->steps[i].learning_rate, all->steps[i].learning_rate);
    }
    for (std::size_t i = 0; i < rest->epochs.size(); ++i) {
      EXPECT_EQ(rest->epochs[i].train_loss, all->epochs[i].train_loss);
      EXPECT_EQ(rest->epochs[i].samples, all->epochs[i].samples);
      EXPECT_EQ(rest->epochs[i].steps, all->epochs[i].steps);
    }
  }
}

TEST(Carry, LosesNothingWhereCoresDie) {
  for (const CarryCase& of : carry_cases()) {
    TrainOptions options = carry_options(3);
    options.cores = 5;
    options.faults.rate = 0.3;
    const auto seen = std::make_shared<Seen>();
    carry_trainer(of, options, seen).fit();
    expect_all_seen(of, *seen, 3, options.seed);
  }
}

TEST(Carry, HasTheSameBitsWhoeverComputes) {
  for (const CarryCase& of : carry_cases()) {
    if (of.rows.size() == 1) continue;
    const auto make = [&](const auto& change) {
      TrainOptions options = carry_options(6);
      change(options);
      return carry_trainer(of, options);
    };
    EXPECT_EQ(test::difference_in_bits(make, 6), std::nullopt) << of.what;
  }
}

TEST(Carry, GoesOnWithMoreEpochsWhereItEnded) {
  for (const CarryCase& of : carry_cases()) {
    const auto seen = std::make_shared<Seen>();
    Trainer first = carry_trainer(of, carry_options(2), seen);
    first.fit();
    Trainer second = carry_trainer(of, carry_options(5), seen);
    second.load_state(first.state());
    second.fit();
    EXPECT_EQ(second.result().epochs, 5);
    expect_all_seen(of, *seen, 5, carry_options(5).seed);
  }
}

// The step that completes an epoch goes on in the next one, and the evaluation comes after it.
TEST(Carry, EndsAnEpochAfterTheStepThatCompletesIt) {
  class Log final : public Observer {
   public:
    void on_epoch_begin(Training&, const EpochStart& epoch) override {
      text += "b" + std::to_string(epoch.steps.value_or(-1));
    }
    void on_step(Training&, const StepRecord& step) override {
      text += "s" + std::to_string(step.plan.batch_size);
    }
    void on_evaluate(Training&, const EpochRecord&) override { text += "v"; }
    void on_epoch(Training&, const EpochRecord&) override { text += "e "; }
    std::string text;
  };
  const auto log = [](const std::vector<std::int64_t>& rows, std::int64_t epochs) {
    Trainer trainer = carry_trainer({"", 48, rows}, carry_options(epochs));
    const auto logged = trainer.add_observer<Log>();
    trainer.fit();
    return logged->text;
  };
  EXPECT_EQ(log({32}, 2), "b2s32s32ve b1s32ve ");
  EXPECT_EQ(log({40}, 3), "b2s40s40ve b1s40ve b1s24ve ");
  EXPECT_EQ(log({16, 128}, 4), "b2s16s128ve b0ve b0ve b2s16s32ve ");
}

// The orders are those of the epochs without carry, and the keys of random numbers are all
// different.
TEST(Carry, IsDropWhereEverythingFits) {
  for (const char* rule : {"linear", "adascale"}) {
    TrainOptions options = carry_options(3);
    options.rule = rule;
    Trainer carry = carry_trainer(carry_cases()[0], options);
    carry.fit();
    options.remainder = Remainder::drop;
    Trainer drop = carry_trainer(carry_cases()[0], options);
    drop.fit();
    EXPECT_EQ(test::difference_of(carry, drop), std::nullopt);
    EXPECT_THAT(error_of([&] {
                  Trainer other = carry_trainer(carry_cases()[0], options);
                  other.load_state(carry.state());
                }),
                HasSubstr("remainder was carry, is drop"));
  }
}

TEST(Carry, StopsWhereTheTraceDoes) {
  TrainOptions options = carry_options(9);
  const auto seen = std::make_shared<Seen>();
  Trainer trainer(std::make_unique<CountingObjective>(48, seen),
                  trace_of({32, 32, 20}, TraceEnd::stop), options);
  const auto recorder = trainer.add_observer<test::Recorder>();
  const TrainResult result = trainer.fit();
  EXPECT_EQ(result.stopped, "the trace ended after 3 steps");
  EXPECT_EQ(result.epochs, 1);
  ASSERT_EQ(recorder->epochs.size(), 2U);
  EXPECT_FALSE(recorder->epochs[1].whole);
  EXPECT_EQ(recorder->epochs[1].samples, 36);
  EXPECT_EQ(recorder->epochs[1].steps, 1);
  ASSERT_TRUE(result.part.has_value());
  EXPECT_EQ(result.part->samples, 36);
}

TEST(Carry, RefusesAStateThatIsDamaged) {
  Trainer trainer = carry_trainer(carry_cases()[1], carry_options(1));
  trainer.fit();
  const State good = trainer.state();
  for (const std::int64_t carried : {std::int64_t{-1}, std::int64_t{1} << 60}) {
    State damaged = test::without_array(good, "carried.samples");
    damaged.put("carried.samples", carried);
    Trainer other = carry_trainer(carry_cases()[1], carry_options(1));
    EXPECT_NE(error_of([&] { other.load_state(damaged); }), "no error") << carried;
  }
}

}  // namespace
}  // namespace rubato
