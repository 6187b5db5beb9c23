#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include <rubato/base/state.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/loop/reducer.hpp>

#include "networks.hpp"
#include "support.hpp"

namespace rubato {
namespace {

// Everything that a run computes.
struct Outcome {
  std::string state;
  std::vector<double> losses;
  double train_loss = 0;
  Evaluation test;
};

// Two epochs of steps of 1, 13, 3, 24, 2 minibatches: one odd tree after the other, and on 64 cores
// always idle ones.
class SameBits : public testing::Test {
 protected:
  Outcome run(TrainOptions options) const {
    options.epochs = 2;
    options.minibatch_size = 8;
    options.learning_rate = 0.05;
    options.reference_batch_size = 32;
    options.optimizer = {.momentum = 0.5, .weight_decay = 1e-4};
    TorchTrainer trainer(builtin_model("mnist-cnn", {}), nll_loss(), train_,
                         test::trace_of({8, 104, 24, 192, 16}, TraceEnd::cycle), options);
    const auto recorder = trainer.add_observer<test::Recorder>();
    trainer.set_test(test_);
    trainer.fit();
    Outcome outcome;
    outcome.state = test::state_bytes(trainer);
    for (const StepRecord& step : recorder->steps) outcome.losses.push_back(step.loss);
    outcome.train_loss = recorder->epochs.back().train_loss;
    outcome.test = recorder->epochs.back().test.value();
    return outcome;
  }

 private:
  TensorDataset train_ = test::digits(350);
  TensorDataset test_ = test::digits(300, 2);
};

TEST_F(SameBits, ForAllThreadsCoresAndAssignments) {
  const Outcome expected = run({.cores = 1, .threads = 1});
  ASSERT_EQ(expected.losses.size(), 10U);
  for (const int threads : {1, 2, 4}) {
    for (const std::int64_t cores : {1, 3, 8, 64}) {
      for (const auto& assignment : kAssignments) {
        SCOPED_TRACE(testing::Message()
                     << threads << " threads, " << cores << " cores, " << assignment.name);
        const Outcome outcome =
            run({.cores = cores, .assignment = assignment.value, .threads = threads});
        EXPECT_TRUE(outcome.state == expected.state);
        EXPECT_EQ(outcome.losses, expected.losses);
        EXPECT_EQ(outcome.train_loss, expected.train_loss);
        EXPECT_EQ(outcome.test.loss, expected.test.loss);
        EXPECT_EQ(outcome.test.accuracy, expected.test.accuracy);
      }
    }
  }
}

TEST_F(SameBits, ButNotForAnotherSeedOrRule) {
  const Outcome expected = run({.threads = 2});
  EXPECT_TRUE(run({.threads = 2}).state == expected.state);
  EXPECT_FALSE(run({.seed = 43, .threads = 2}).state == expected.state);
  EXPECT_FALSE(run({.rule = "root", .threads = 2}).state == expected.state);
}

// What a run came to: its weights, and every number that it reported.
std::string outcome_of(TorchTrainer& trainer, const test::Recorder& recorder) {
  std::string outcome = test::state_bytes(trainer);
  const auto add = [&outcome](std::optional<double> value) {
    const double number = value.value_or(-1);
    outcome.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  for (const StepRecord& step : recorder.steps) {
    for (const double number : {step.loss, step.learning_rate, step.gain, step.iterations}) {
      add(number);
    }
    add(step.gradient_norm);
    add(step.noise_scale);
    add(step.measured_gain);
  }
  for (const EpochRecord& epoch : recorder.epochs) {
    add(epoch.train_loss);
    add(epoch.test->loss);
    add(epoch.test->accuracy);
  }
  return outcome;
}

// Two epochs of the network with dropout, as a whole or with the state handed from one trainer to
// another, of another number of threads and cores, after `resume_after` steps.
class SameBitsOfAll : public testing::Test {
 protected:
  static TorchTrainer trainer_of(test::AllOptions options) {
    options.epochs = 2;
    options.minibatch_size = 8;
    options.reference_batch_size = 32;
    options.learning_rate = 0.05;
    // Whatever else has drawn from libtorch's generator.
    at::manual_seed(static_cast<std::uint64_t>(options.cores));
    TorchTrainer trainer(model_factory<test::DropoutNet>(), nll_loss(), test::digits(350),
                         test::trace_of({8, 104, 24, 192, 16}, TraceEnd::cycle), options,
                         options.torch);
    trainer.set_test(test::digits(50, 2));
    return trainer;
  }

  static std::string run(const test::AllOptions& options, std::int64_t resume_after = 0) {
    const auto recorder = std::make_shared<test::Recorder>();
    if (resume_after == 0) {
      TorchTrainer trainer = trainer_of(options);
      trainer.add_observer(recorder);
      trainer.fit();
      return outcome_of(trainer, *recorder);
    }
    test::AllOptions other = options;
    other.cores = 5;
    other.threads = 3;
    other.reduce = "tree";
    State state;
    {
      TorchTrainer first = trainer_of(other);
      first.add_observer(recorder);
      first.add_observer<test::Recorder>([&](Training& training, const StepRecord& step) {
        if (step.plan.index.value() + 1 == resume_after) training.pause();
      });
      first.fit();
      state = parse_state(state_bytes(first.state()), "state");
    }
    TorchTrainer second = trainer_of(options);
    second.add_observer(recorder);
    second.load_state(state);
    second.fit();
    return outcome_of(second, *recorder);
  }

  // All threads, cores, reproducible reducers, with and without a resume: one outcome.
  static void expect_one_outcome(const test::AllOptions& options) {
    test::AllOptions plain = options;
    plain.cores = 1;
    plain.threads = 1;
    const std::string expected = run(plain);
    for (const int threads : {1, 2, 4}) {
      for (const std::int64_t cores : {1, 3, 8, 64}) {
        for (const std::string_view reduce : reducer_names()) {
          if (!is_reproducible(reduce)) continue;
          for (const std::int64_t resume_after : {0, 7}) {
            test::AllOptions other = options;
            other.cores = cores;
            other.threads = threads;
            other.reduce = reduce;
            EXPECT_TRUE(run(other, resume_after) == expected)
                << threads << " threads, " << cores << " cores, " << reduce << ", resumed after "
                << resume_after;
          }
        }
      }
    }
    test::AllOptions dealt = options;
    dealt.cores = 2;
    dealt.threads = 3;
    dealt.dealing = Dealing::in_turns;
    EXPECT_TRUE(run(dealt) == expected) << "replicas in turns";
    test::AllOptions faulty = options;
    faulty.threads = 3;
    faulty.faults.planned = {{CoreRank{2}, StepIndex{1}, 1}, {CoreRank{0}, StepIndex{3}, 5}};
    EXPECT_TRUE(run(faulty) == expected) << "cores that die";
    plain.assignment = Assignment::strided;
    plain.cores = 3;
    EXPECT_TRUE(run(plain) == expected) << "strided";
    plain.seed = 43;
    EXPECT_FALSE(run(plain) == expected) << "another seed";
  }
};

TEST_F(SameBitsOfAll, OfDropoutAndBatchNormalisation) {
  test::AllOptions options = TrainOptions{.optimizer = {.momentum = 0.5}};
  options.torch.augment = random_shift(2);
  expect_one_outcome(options);
}

TEST_F(SameBitsOfAll, OfAdaScaleLookaheadAndCosine) {
  expect_one_outcome(TrainOptions{.rule = "adascale",
                                  .schedule = "cosine:total=3",
                                  .optimizer = {.momentum = 0.9, .weight_decay = 0.01},
                                  .groups = {no_decay_for_vectors()},
                                  .lookahead = LookaheadOptions{.k = 3},
                                  .clip_norm = 0.5,
                                  .log_noise = true});
}

// The trace says how many cores there are, and changes it from step to step.
TEST_F(SameBitsOfAll, ForCoresThatChangeFromStepToStep) {
  const auto train = [](const std::vector<std::int64_t>& cores) {
    std::vector<TraceStep> steps;
    for (std::size_t i = 0; i < 6; ++i) {
      steps.push_back({static_cast<std::int64_t>(8 + 24 * i), cores[i % cores.size()]});
    }
    TorchTrainer trainer(model_factory<test::DropoutNet>(), nll_loss(), test::digits(350),
                         Trace(steps, TraceEnd::cycle, "changing"),
                         {.epochs = 2, .minibatch_size = 8, .rule = "adascale", .threads = 2});
    trainer.fit();
    return test::state_bytes(trainer);
  };
  EXPECT_TRUE(train({1}) == train({7, 1, 64, 2}));
}

// Not only the same for all, but different for each.
TEST_F(SameBitsOfAll, EveryMinibatchDrawsNumbersOfItsOwn) {
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
TEST_F(SameBitsOfAll, WithAResumeAfterEveryStep) {
  const TrainOptions options{.rule = "adascale:ramp=3",
                             .schedule = "plateau:patience=0+warmup:length=3,start=0.1",
                             .schedule_unit = ScheduleUnit::steps,
                             .optimizer = {.method = AdamOptions{}},
                             .lookahead = LookaheadOptions{.k = 2},
                             .log_noise = true,
                             .cores = 2,
                             .threads = 2};
  const std::string expected = run(options);
  for (std::int64_t after = 1; after <= 10; ++after) {
    EXPECT_TRUE(run(options, after) == expected) << after;
  }
  for (const char* const spec : {"sgd", "lars", "adamw:amsgrad=true", "rmsprop", "adagrad"}) {
    const TrainOptions other{
        .rule = "linear", .optimizer = parse_optimizer(spec, {.weight_decay = 0.01}), .threads = 2};
    EXPECT_TRUE(run(other, 4) == run(other)) << spec;
  }
  const TrainOptions lbsgd{.rule = "lbsgd:warmup=sqrt,epochs=2", .threads = 2};
  EXPECT_TRUE(run(lbsgd, 4) == run(lbsgd));
}

}  // namespace
}  // namespace rubato
