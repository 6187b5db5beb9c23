#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/steps/random.hpp>

#include "support.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/recorded.hpp"

namespace rubato {
namespace {

// Forty samples in three classes for a linear model; an epoch is five minibatches of eight.
constexpr ImageShape kTinyShape{.channels = 1, .height = 2, .width = 3, .classes = 3};
constexpr std::int64_t kTinyImages = 40;

TensorDataset tiny_images() {
  at::manual_seed(1);
  const at::Tensor inputs = at::randn({kTinyImages, 1, 2, 3});
  return {.inputs = inputs, .targets = inputs.flatten(1).narrow(1, 0, 3).argmax(1)};
}

TrainOptions tiny_options(std::int64_t epochs, int threads = 2) {
  return {.epochs = epochs,
          .minibatch_size = 8,
          .learning_rate = 0.5,
          .reference_batch_size = 16,
          .cores = 3,
          .threads = threads};
}

TorchTrainer tiny_trainer(const Trace& trace, const TrainOptions& options) {
  return TorchTrainer(builtin_model("softmax", kTinyShape), nll_loss(), tiny_images(), trace,
                      options);
}

// Writes down who heard what.
class Listener : public Observer {
 public:
  Listener(std::string name, std::vector<std::string>& log) : name_(std::move(name)), log_(log) {}
  void on_epoch_begin(Training&, const EpochStart& epoch) override {
    write("begin", epoch.index.value());
  }
  void on_step(Training&, const StepRecord& step) override {
    write("step", step.plan.index.value());
  }
  void on_epoch(Training&, const EpochRecord& epoch) override {
    write("epoch", epoch.epoch.value());
  }

 private:
  void write(const char* what, std::int64_t which) {
    log_.push_back(name_ + " " + what + " " + std::to_string(which));
  }
  std::string name_;
  std::vector<std::string>& log_;
};

TEST(Trainer, TellsObserversInTheirOrder) {
  TorchTrainer trainer = tiny_trainer(test::trace_of({24, 16, 40}), tiny_options(2));
  std::vector<std::string> log;
  trainer.add_observer<Listener>("a", log);
  trainer.add_observer<Listener>("b", log);
  trainer.fit();
  EXPECT_THAT(log, ElementsAre("a begin 0", "b begin 0", "a step 0", "b step 0", "a step 1",
                               "b step 1", "a epoch 0", "b epoch 0", "a begin 1", "b begin 1",
                               "a step 2", "b step 2", "a epoch 1", "b epoch 1"));
}

TEST(Trainer, RecordsWhatItDid) {
  const Trace trace({{8, std::nullopt}, {24, 2}, {40, std::nullopt}}, TraceEnd::cycle,
                    "test trace");
  TrainOptions options = tiny_options(2);
  options.assignment = Assignment::strided;
  TorchTrainer trainer = tiny_trainer(trace, options);
  trainer.set_test(tiny_images());
  const auto recorder = trainer.add_observer<test::Recorder>();
  const TrainResult result = trainer.fit();

  ASSERT_EQ(recorder->steps.size(), 3U);
  const StepRecord& step = recorder->steps[1];
  EXPECT_EQ(step.epoch, EpochIndex{0});
  EXPECT_EQ(step.plan.index, StepIndex{1});
  EXPECT_EQ(step.plan.batch_size, 24);
  EXPECT_EQ(step.plan.minibatches, 3);
  EXPECT_EQ(step.plan.first_minibatch, MinibatchIndex{1});
  EXPECT_EQ(step.plan.cores, 2) << "as the trace says";
  EXPECT_EQ(recorder->steps[0].plan.cores, 3) << "as the options say";
  EXPECT_EQ(step.assignment, Assignment::strided);
  EXPECT_DOUBLE_EQ(step.scale, 1.5);
  EXPECT_DOUBLE_EQ(step.learning_rate, 0.75);
  EXPECT_GT(step.seconds.data, 0);
  EXPECT_GT(step.seconds.compute, 0);
  EXPECT_GT(step.seconds.reduce, 0);
  EXPECT_GT(step.seconds.update, 0);
  EXPECT_LE(step.seconds.data + step.seconds.compute + step.seconds.reduce,
            trainer.threads() * (step.seconds.wall - step.seconds.update));
  EXPECT_EQ(recorder->steps[2].plan.index, StepIndex{2}) << "counted from the start of the trace";
  EXPECT_EQ(recorder->steps[2].plan.first_minibatch, MinibatchIndex{0});

  ASSERT_EQ(recorder->epochs.size(), 2U);
  const EpochRecord& epoch = recorder->epochs[0];
  EXPECT_EQ(epoch.steps, 2);
  EXPECT_EQ(epoch.samples, 32);
  EXPECT_DOUBLE_EQ(epoch.train_loss, (recorder->steps[0].loss + 3 * recorder->steps[1].loss) / 4);
  EXPECT_GT(epoch.train_seconds, 0);
  EXPECT_EQ(epoch.test->samples, kTinyImages);
  EXPECT_DOUBLE_EQ(recorder->epochs[1].train_loss, recorder->steps[2].loss);

  EXPECT_EQ(result.epochs, 2);
  EXPECT_EQ(result.steps, 3);
  EXPECT_EQ(result.samples, 72);
  EXPECT_NEAR(result.train_seconds,
              recorder->epochs[0].train_seconds + recorder->epochs[1].train_seconds, 1e-9);
  EXPECT_EQ(result.final_test->loss, recorder->epochs[1].test->loss);
  EXPECT_EQ(result.best_test_accuracy,
            std::max(recorder->epochs[0].test->accuracy, recorder->epochs[1].test->accuracy));
}

TEST(Trainer, RefusesATraceThatEndsTooEarly) {
  EXPECT_THAT(error_of([] {
                tiny_trainer(test::trace_of({16, 8}, TraceEnd::error), tiny_options(2));
              }),
              AllOf(HasSubstr("test trace"), HasSubstr("ends after 0 epochs"),
                    HasSubstr("2 are asked for")));
}

// Of five minibatches, three.
TEST(Trainer, TellsAPartOfAnEpochFromAWholeOne) {
  TorchTrainer trainer = tiny_trainer(test::trace_of({16, 8}, TraceEnd::stop), tiny_options(2));
  std::vector<std::optional<EpochPart>> parts;
  const auto recorder = test::train_until(trainer, 1);
  ASSERT_TRUE(trainer.result().part.has_value());
  EXPECT_EQ(trainer.result().part->steps, 1);
  EXPECT_EQ(trainer.result().stopped, "");
  const State in_the_middle = trainer.state();
  const auto expect_end = [](const TrainResult& result) {
    EXPECT_EQ(result.epochs, 0);
    ASSERT_TRUE(result.part.has_value());
    EXPECT_EQ(result.part->steps, 2);
    EXPECT_EQ(result.part->samples, 24);
    EXPECT_EQ(result.part->of_steps, 4) << "the last batch twice more";
    EXPECT_EQ(result.stopped, "the trace ended after 2 steps");
  };
  expect_end(trainer.fit());
  // Where the last batch does not divide what is left: as many as would have fitted.
  EXPECT_EQ(
      tiny_trainer(test::trace_of({8, 24}, TraceEnd::stop), tiny_options(2)).fit().part->of_steps,
      2);
  EXPECT_FALSE(recorder->epochs.at(0).whole);

  // Through states, too.
  for (const State& state : {in_the_middle, trainer.state()}) {
    TorchTrainer other = tiny_trainer(test::trace_of({16, 8}, TraceEnd::stop), tiny_options(2));
    other.load_state(state);
    ASSERT_TRUE(other.result().part.has_value());
    expect_end(other.fit());
  }

  // A trace that ends with an epoch leaves no part, and ends the training as well.
  TorchTrainer even = tiny_trainer(test::trace_of({16, 24}, TraceEnd::stop), tiny_options(2));
  const TrainResult result = even.fit();
  EXPECT_EQ(result.epochs, 1);
  EXPECT_FALSE(result.part.has_value());
  EXPECT_EQ(result.stopped, "the trace ended after 2 steps");
  // What was asked for is what was trained.
  TorchTrainer full = tiny_trainer(test::trace_of({16, 24}, TraceEnd::stop), tiny_options(1));
  EXPECT_EQ(full.fit().stopped, "");
}

TEST(Trainer, StopsAtALossThatIsNotFiniteAndKeepsTheLastGoodParameters) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const TrainOptions options = tiny_options(1);
  // In the last of three steps, which has a good minibatch besides.
  const EpochSamples samples(kTinyImages, 8, options.seed, EpochIndex{0});
  const std::int64_t bad_sample = samples.minibatch(MinibatchIndex{4}).front();
  for (const double bad : {kNan, kInfinity}) {
    const std::string word = std::isnan(bad) ? "NaN" : "infinite";
    TensorDataset data{.inputs = tiny_images().inputs, .targets = at::zeros({kTinyImages, 3})};
    data.targets[bad_sample].fill_(bad);
    TorchTrainer trainer(builtin_model("softmax", kTinyShape), mse_loss(), data,
                         test::trace_of({16, 8, 16}), options);
    std::vector<std::string> states;
    const auto recorder = trainer.add_observer<test::Recorder>(
        [&](Training&, const StepRecord&) { states.push_back(test::state_bytes(trainer)); });
    try {
      trainer.fit();
      FAIL() << "went on with " << word;
    } catch (const Diverged& error) {
      EXPECT_THAT(error.what(),
                  testing::Eq("the loss became " + word +
                              " at epoch 1, step 3 of the run (batch 16, rule linear, "
                              "lr 0.5); the step was not applied"));
      EXPECT_EQ(error.step().plan.index, StepIndex{2});
      EXPECT_FALSE(std::isfinite(error.step().loss));
    }
    ASSERT_EQ(recorder->steps.size(), 3U) << "the observer hears of the bad step, too";
    EXPECT_FALSE(std::isfinite(recorder->steps[2].loss));
    EXPECT_FALSE(recorder->steps[2].applied);
    EXPECT_EQ(recorder->steps[2].iterations, recorder->steps[1].iterations);
    EXPECT_EQ(trainer.result().iterations, recorder->steps[1].iterations);
    EXPECT_TRUE(std::isfinite(recorder->steps[1].loss));
    EXPECT_TRUE(recorder->epochs.empty());
    EXPECT_FALSE(states[1] == states[0]);
    EXPECT_TRUE(states[2] == states[1]) << "the bad step is not applied";
    EXPECT_TRUE(test::state_bytes(trainer) == states[1]);
    EXPECT_EQ(trainer.result().epochs, 0);
    EXPECT_EQ(trainer.result().steps, 2);
    EXPECT_EQ(trainer.result().samples, 24);
  }
}

// A loss that is finite, as are all outputs, but whose slope is not.
at::Tensor steep_loss(const at::Tensor& output, const at::Tensor&) {
  return output.sub(output.detach()).abs().sqrt().sum();
}

TEST(Trainer, StopsAtAGradientThatIsNotFinite) {
  TorchTrainer trainer(builtin_model("softmax", kTinyShape), steep_loss, tiny_images(),
                       Trace::constant(16), tiny_options(1));
  const std::string initial = test::state_bytes(trainer);
  try {
    trainer.fit();
    FAIL() << "went on";
  } catch (const Diverged& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("the gradient became infinite or NaN at epoch 1, step 1 of"),
                      HasSubstr("the step was not applied")));
    EXPECT_TRUE(std::isfinite(error.step().loss));
    EXPECT_FALSE(error.step().applied);
  }
  EXPECT_TRUE(test::state_bytes(trainer) == initial);
}

TEST(Trainer, StopsAtATestLossThatIsNotFinite) {
  TorchTrainer trainer(builtin_model("softmax", kTinyShape), nll_loss(), tiny_images(),
                       Trace::constant(16), tiny_options(2));
  TensorDataset test = tiny_images();
  test.inputs = test.inputs.clone();
  test.inputs[0].fill_(std::numeric_limits<double>::quiet_NaN());
  trainer.set_test(test);
  const auto recorder = trainer.add_observer<test::Recorder>();
  try {
    trainer.fit();
    FAIL() << "went on";
  } catch (const Diverged& error) {
    EXPECT_THAT(error.what(), HasSubstr("the test loss became NaN at epoch 1, step "));
    EXPECT_EQ(error.step().plan.index, recorder->steps.back().plan.index);
    EXPECT_THAT(error.advice(), ContainsRegex("^the training loss is [0-9.]+: look for "
                                              "extreme values in the test data, or try"));
  }
  EXPECT_EQ(recorder->epochs.size(), 1U) << "the observer hears of it, too";
  EXPECT_EQ(trainer.result().epochs, 1);
}

TEST(Trainer, TrainsWhereTheCallerHasGradientsOff) {
  TorchTrainer trainer(builtin_model("softmax", kTinyShape), nll_loss(), tiny_images(),
                       Trace::constant(16), tiny_options(1));
  const at::NoGradGuard no_grad;
  EXPECT_EQ(trainer.fit().epochs, 1);
}

TEST(Trainer, WantsOneDifferentiableNumberFromALoss) {
  const auto error_of_loss = [](Loss loss) {
    return error_of([&] {
      TorchTrainer trainer(builtin_model("softmax", kTinyShape), std::move(loss), tiny_images(),
                           Trace::constant(8), tiny_options(1));
      trainer.fit();
    });
  };
  const char* what = "the loss of a minibatch must be one differentiable number";
  EXPECT_THAT(
      error_of_loss([](const at::Tensor& output, const at::Tensor&) { return output.sum(1); }),
      AllOf(HasSubstr(what), HasSubstr("it has 1 dimension and a gradient")));
  EXPECT_THAT(error_of_loss([](const at::Tensor& output, const at::Tensor&) {
                return output.detach().sum();
              }),
              HasSubstr(what));
}

TEST(Trainer, RefusesOptionsOutOfRange) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    std::function<void(TrainOptions&)> change;
    std::string message;
  };
  const std::vector<Case> cases{
      {[](auto& o) { o.epochs = 0; }, "0 epochs: at least 1 is needed"},
      {[](auto& o) { o.learning_rate = 0; }, "learning rate 0: accepted are values above 0"},
      {[](auto& o) { o.learning_rate = kNan; }, "learning rate nan: accepted are values above 0"},
      {[](auto& o) { o.learning_rate = kInfinity; },
       "learning rate inf: accepted are values above 0"},
      {[](auto& o) { o.reference_batch_size = 0; }, "reference batch size 0: at least 1 is needed"},
      {[](auto& o) { o.threads = -1; }, "-1 threads: at least 1 is needed (0 takes all)"},
      {[](auto& o) { o.minibatch_size = 0; }, "minibatches of 0 samples; accepted: 1 to "},
      {[](auto& o) { o.cores = 0; }, "0 cores; accepted: 1 to "},
      {[](auto& o) { o.rule = "liner"; }, "unknown rule 'liner'; did you mean 'linear'?"},
      {[](auto& o) { o.optimizer.momentum = 1; },
       "momentum 1: accepted are values from 0 to below 1"},
      {[](auto& o) {
         o.rule = "linear-momentum";
         o.optimizer.method = AdamOptions{};
       },
       "rule: linear-momentum sums gradients"},
      {[](auto& o) { o.schedule = "cosine"; }, "cosine needs a 'total'"},
      {[](auto& o) { o.budget.iterations = 0; }, "0 iterations"},
      {[](auto& o) { o.clip_norm = -1; }, "clipping to norm -1"},
      {[](auto& o) { o.clip_value = 0; }, "clipping to value 0: accepted"},
      {[](auto& o) { o.clip_norm = o.clip_value = 1; },
       "clip_value: gradients are clipped by their norm already; accepted: one of them"},
      {[](auto& o) { o.top_k = -1; }, "top -1"},
      {[](auto& o) { o.lookahead = LookaheadOptions{.k = 0}; }, "Lookahead's k 0"}};
  for (const Case& c : cases) {
    TrainOptions options = tiny_options(1);
    const std::string error = error_of([&] {
      c.change(options);
      tiny_trainer(Trace::constant(8), options);
    });
    EXPECT_THAT(error, StartsWith(c.message));
  }
}

TEST(Trainer, RefusesDataThatDoesNotFit) {
  const auto error_of_data = [](const TensorDataset& data,
                                const Trace& trace = Trace::constant(8)) {
    return error_of([&] {
      TorchTrainer(builtin_model("softmax", kTinyShape), nll_loss(), data, trace, tiny_options(1));
    });
  };
  const TensorDataset good = tiny_images();
  EXPECT_EQ(error_of_data(good), "no error");
  EXPECT_EQ(error_of_data({.inputs = {}, .targets = good.targets}),
            "training data: inputs hold no sample");
  EXPECT_EQ(error_of_data({.inputs = good.inputs, .targets = at::zeros({0}, at::kLong)}),
            "training data: targets hold no sample");
  EXPECT_EQ(error_of_data({.inputs = good.inputs, .targets = at::zeros({}, at::kLong)}),
            "training data: targets hold no sample");
  EXPECT_EQ(error_of_data({.inputs = good.inputs, .targets = good.targets.narrow(0, 0, 39)}),
            "training data: 40 inputs but 39 targets; there must be one target for each input");
  EXPECT_EQ(error_of_data({.inputs = good.inputs.to(at::kMeta), .targets = good.targets}),
            "training data: inputs are on meta; accepted: cpu");
  EXPECT_THAT(error_of_data(
                  {.inputs = good.inputs.narrow(0, 0, 7), .targets = good.targets.narrow(0, 0, 7)}),
              HasSubstr("holds 7 samples, less than one minibatch of 8"));
  EXPECT_THAT(error_of_data(good, test::trace_of({16, 12})),
              HasSubstr("batch size 12 is not a multiple of the minibatch size 8"));
  EXPECT_THAT(error_of_data(good, test::trace_of({16, 48})),
              HasSubstr("batch size 48 is larger than an epoch"));

  TorchTrainer trainer = tiny_trainer(Trace::constant(8), tiny_options(1));
  EXPECT_EQ(error_of([&] { trainer.set_test(TensorDataset()); }),
            "test data: inputs hold no sample");
  EXPECT_EQ(error_of([&] { return trainer.evaluate(TensorDataset()); }),
            "data to evaluate on: inputs hold no sample");
}

TEST(Trainer, InitialisesBySeedWhateverTheThreads) {
  const auto initial = [](std::uint64_t seed, int threads) {
    TrainOptions options = tiny_options(1, threads);
    options.seed = seed;
    const TorchTrainer trainer = tiny_trainer(Trace::constant(8), options);
    // And what the model may draw from libtorch's generator from here on.
    return test::state_bytes(trainer) + test::bytes_of(at::rand({8}));
  };
  EXPECT_TRUE(initial(1, 1) == initial(1, 4));
  EXPECT_FALSE(initial(1, 1) == initial(2, 1));
}

TEST(Trainer, TakesAllThreadsWhenNotToldHowManyAndGivesLibtorchOne) {
  const TorchTrainer trainer = tiny_trainer(Trace::constant(8), tiny_options(1, 0));
  EXPECT_GE(trainer.threads(), 1);
  EXPECT_EQ(trainer.options().threads, trainer.threads());
  EXPECT_EQ(at::get_num_threads(), 1);
}

// On one thread a step of 64 minibatches holds at most log2(64) + 1 gradients, whatever the cores.
TEST(Trainer, HoldsFewGradientBuffers) {
  TrainOptions options = tiny_options(1, 1);
  options.minibatch_size = 1;
  options.cores = 64;
  const TensorDataset data{.inputs = at::randn({64, 1, 2, 3}),
                           .targets = at::zeros({64}, at::kLong)};
  const auto buffers_with = [&] {
    TorchTrainer trainer(builtin_model("softmax", kTinyShape), nll_loss(), data,
                         Trace::constant(64), options);
    trainer.fit();
    return trainer.gradient_buffers();
  };
  EXPECT_EQ(buffers_with(), 7);
  // A core whose minibatches are strided leaves many sums waiting for the other cores'.
  options.cores = 8;
  EXPECT_EQ(buffers_with(), 7);
  options.assignment = Assignment::strided;
  EXPECT_GT(buffers_with(), 7);
}

}  // namespace
}  // namespace rubato
