#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/testing.hpp>

#include "networks.hpp"
#include "support.hpp"

namespace rubato {
namespace {

constexpr std::int64_t kSteps = 10;

const TensorDataset& train_digits() {
  static const TensorDataset data = test::digits(350);
  return data;
}

// Two epochs of steps of 1, 13, 3, 24, 2 minibatches: one odd tree after the other, and on 64 cores
// always idle ones.
TorchTrainer trainer_of(test::AllOptions options,
                        const ModelFactory& model = model_factory<test::DropoutNet>()) {
  options.epochs = 2;
  options.minibatch_size = 8;
  options.reference_batch_size = 32;
  options.learning_rate = 0.05;
  // Whatever else has drawn from libtorch's generator.
  at::manual_seed(static_cast<std::uint64_t>(options.cores));
  TorchTrainer trainer(model, nll_loss(), train_digits(),
                       test::trace_of({8, 104, 24, 192, 16}, TraceEnd::cycle), options,
                       options.torch);
  trainer.set_test(test::digits(50, 2));
  return trainer;
}

// Trainers of these options, changed as a way to train asks for.
MakeTrainer maker_of(const test::AllOptions& options,
                     const ModelFactory& model = model_factory<test::DropoutNet>()) {
  return [=](const std::function<void(TrainOptions&)>& change) -> Trainer {
    test::AllOptions changed = options;
    change(changed);
    return trainer_of(changed, model);
  };
}

std::string trained_state(const test::AllOptions& options) {
  TorchTrainer trainer = trainer_of(options);
  trainer.fit();
  return test::state_bytes(trainer);
}

TEST(SameBits, OfDropoutAndBatchNormalisation) {
  test::AllOptions options = TrainOptions{.optimizer = {.momentum = 0.5}};
  options.torch.augment = random_shift(2);
  EXPECT_EQ(test::difference_in_bits(maker_of(options), kSteps), std::nullopt);
}

TEST(SameBits, OfTheNetworkWithReplacedOperators) {
  const TrainOptions options{.optimizer = {.momentum = 0.5, .weight_decay = 1e-4}, .threads = 2};
  const MakeTrainer make = maker_of(options, builtin_model("mnist-cnn", {}));
  for (const ExecutionOutcome& outcome : verify(make, options, kSteps)) {
    EXPECT_EQ(outcome.difference, std::nullopt) << outcome.execution.what;
  }
}

TEST(SameBits, ButNotForAnotherSeedOrRule) {
  const std::string expected = trained_state(TrainOptions{.threads = 2});
  EXPECT_TRUE(trained_state(TrainOptions{.threads = 2}) == expected);
  EXPECT_FALSE(trained_state(TrainOptions{.seed = 43, .threads = 2}) == expected);
  EXPECT_FALSE(trained_state(TrainOptions{.rule = "root", .threads = 2}) == expected);
}

// The trace says how many cores there are, and changes it from step to step.
TEST(SameBits, ForCoresThatChangeFromStepToStep) {
  const auto train = [](const std::vector<std::int64_t>& cores) {
    std::vector<TraceStep> steps;
    for (std::size_t i = 0; i < 6; ++i) {
      steps.push_back({static_cast<std::int64_t>(8 + 24 * i), cores[i % cores.size()]});
    }
    TorchTrainer trainer(model_factory<test::DropoutNet>(), nll_loss(), train_digits(),
                         Trace(steps, TraceEnd::cycle, "changing"),
                         {.epochs = 2, .minibatch_size = 8, .rule = "adascale", .threads = 2});
    trainer.fit();
    return test::state_bytes(trainer);
  };
  EXPECT_TRUE(train({1}) == train({7, 1, 64, 2}));
}

// Not only the same for all, but different for each.
TEST(SameBits, EveryMinibatchDrawsNumbersOfItsOwn) {
  const auto draws_of = [](std::uint64_t seed) {
    std::multiset<float> draws;
    std::mutex mutex;
    test::AllOptions options = TrainOptions{.seed = seed, .cores = 3, .threads = 2};
    options.torch.augment = [&](const at::Tensor& inputs) {
      const float draw = at::rand({1}).item<float>();
      const std::lock_guard lock(mutex);
      draws.insert(draw);
      return inputs;
    };
    TorchTrainer trainer = trainer_of(options);
    trainer.fit();
    return std::pair(draws, static_cast<std::size_t>(trainer.result().samples / 8));
  };
  const auto [draws, minibatches] = draws_of(1);
  EXPECT_EQ(draws.size(), minibatches + 1) << "the trial draws what the first minibatch does";
  EXPECT_EQ((std::set<float>(draws.begin(), draws.end()).size()), minibatches);
  EXPECT_EQ(draws_of(1).first, draws);
  const std::multiset<float> others = draws_of(2).first;
  EXPECT_TRUE(std::none_of(others.begin(), others.end(),
                           [&first = draws](float draw) { return first.contains(draw); }));
}

// After every step, and with every optimizer and everything that remembers something.
TEST(SameBits, WithAResumeAfterEveryStep) {
  const auto expect_same = [](const TrainOptions& options, const std::vector<std::int64_t>& after) {
    Verification verification(maker_of(options), kSteps);
    static_cast<void>(verification.train({.what = "whole", .cores = 5, .threads = 3}));
    for (const std::int64_t steps : after) {
      const Execution resumed{.what = "a resume", .cores = 5, .threads = 3, .resume_after = steps};
      EXPECT_EQ(verification.train(resumed).difference, std::nullopt)
          << options.rule.text() << " " << optimizer_name(options.optimizer.method) << " after "
          << steps;
    }
  };
  expect_same({.rule = "adascale:ramp=3",
               .schedule = "plateau:patience=0+warmup:length=3,start=0.1",
               .schedule_unit = ScheduleUnit::steps,
               .optimizer = {.method = AdamOptions{}},
               .lookahead = LookaheadOptions{.k = 2},
               .log_noise = true,
               .cores = 2,
               .threads = 2},
              {1, 2, 3, 4, 5, 6, 7, 8, 9});
  for (const char* const spec : {"sgd", "lars", "adamw:amsgrad=true",
                                 "adamw:second-moment=minibatch", "rmsprop", "adagrad", "muon"}) {
    expect_same({.optimizer = parse_optimizer(spec, {.weight_decay = 0.01}), .threads = 2}, {4});
  }
  expect_same({.rule = "lbsgd:warmup=sqrt,epochs=2", .threads = 2}, {4});
  // Every step is one of another batch size; there is a metric after five of them.
  expect_same({.rule = "adascale:metric=optimizer",
               .optimizer = {.method = AdamOptions{}},
               .lookahead = LookaheadOptions{.k = 2},
               .threads = 2},
              {4, 5, 7});
  expect_same({.rule = "root-adam",
               .adjustments = {.decay = DecayRule::timescale,
                               .on_batch_change = {.all = Treatment::rescale}},
               .optimizer = parse_optimizer("adamw", {.weight_decay = 0.01}),
               .threads = 2},
              {4, 7});
}

}  // namespace
}  // namespace rubato
