#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <rubato/model/builtin_models.hpp>
#include <rubato/model/initializer.hpp>
#include <rubato/model/module.hpp>
#include <rubato/optim/adascale.hpp>
#include <rubato/plan/shuffle.hpp>
#include <rubato/scaling/lr_schedules.hpp>
#include <rubato/train/best_weights.hpp>
#include <rubato/train/early_stopping.hpp>
#include <rubato/train/losses.hpp>
#include <rubato/train/monitor.hpp>
#include <rubato/train/trainer.hpp>

#include "support.hpp"
#include "support/error_of.hpp"

namespace rubato {
namespace {

using test::error_of;
using testing::DoubleEq;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;

// Forty-eight samples in three classes; an epoch is twelve minibatches of four.
TensorDataset dataset(at::ScalarType type = at::kDouble) {
  at::manual_seed(1);
  const at::Tensor inputs = at::randn({48, 6}, type);
  return {.inputs = inputs, .targets = inputs.narrow(1, 0, 3).argmax(1)};
}

// Two linear layers, in double precision.
class Net : public torch::nn::Module {
 public:
  Net() {
    register_module("hidden", hidden_);
    register_module("out", out_);
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& x) { return out_(at::tanh(hidden_(x))); }

 private:
  torch::nn::Linear hidden_{6, 5};
  torch::nn::Linear out_{5, 3};
};

TrainOptions options_of(std::string rule = "linear") {
  return {.epochs = 2,
          .minibatch_size = 4,
          .learning_rate = 0.1,
          .reference_batch_size = 4,
          .rule = std::move(rule),
          .optimizer = {},
          .cores = 3,
          .threads = 2};
}

Trainer trainer_on(const Trace& trace, const TrainOptions& options) {
  return Trainer(model_factory<Net>(), cross_entropy_loss(), dataset(), trace, options);
}

// The records of a whole training.
test::Recorder& trained(Trainer& trainer, test::Recorder& recorder) {
  trainer.add_observer(recorder);
  trainer.fit();
  return recorder;
}

std::vector<double> rates_of(const test::Recorder& recorder) {
  std::vector<double> rates;
  for (const StepRecord& step : recorder.steps) rates.push_back(step.learning_rate);
  return rates;
}

// --- AdaScale ---

// The same run by the stand-alone class in a loop of its own: the same minibatches, one after the
// other.
struct Loop {
  std::vector<double> gains;
  std::vector<at::Tensor> parameters;
};
Loop adascale_loop(const std::vector<std::int64_t>& batches, const TrainOptions& options) {
  const TensorDataset data = dataset();
  at::manual_seed(options.seed);
  Net net;
  // Where there are groups: the weights, and the biases.
  std::vector<torch::optim::OptimizerParamGroup> groups;
  std::vector<at::Tensor> weights;
  std::vector<at::Tensor> biases;
  for (const at::Tensor& parameter : net.parameters()) {
    (parameter.dim() == 1 && !options.groups.empty() ? biases : weights).push_back(parameter);
  }
  groups.emplace_back(weights);
  if (!biases.empty()) groups.emplace_back(biases);
  torch::optim::SGD sgd(
      groups, torch::optim::SGDOptions(options.learning_rate).momentum(options.optimizer.momentum));
  AdaScale adascale(sgd, {.num_gradients_to_accumulate = 2});
  Loop loop;
  std::int64_t minibatch = 0;
  std::int64_t epoch = 0;
  for (const std::int64_t batch : batches) {
    if ((minibatch + batch / 4) * 4 > data.size()) {
      ++epoch;
      minibatch = 0;
    }
    const EpochSamples samples(data.size(), 4, options.seed, EpochIndex{epoch});
    adascale.set_scale(static_cast<double>(batch) /
                       static_cast<double>(options.reference_batch_size));
    adascale.set_num_gradients_to_accumulate(batch / 4);
    adascale.zero_grad();
    for (std::int64_t i = 0; i < batch / 4; ++i) {
      const auto indices = samples.minibatch(MinibatchIndex{minibatch++});
      const at::Tensor index =
          at::tensor(std::vector<std::int64_t>(indices.begin(), indices.end()), at::kLong);
      at::cross_entropy_loss(net.forward(data.inputs.index_select(0, index)),
                             data.targets.index_select(0, index))
          .backward();
    }
    adascale.step();
    loop.gains.push_back(adascale.gain());
  }
  for (const at::Tensor& parameter : net.parameters()) loop.parameters.push_back(parameter);
  return loop;
}

TEST(AdaScaleInTheTrainer, IsTheClassOnItsOwn) {
  // Uneven substeps on 3 cores, idle ones among 8, a scale that is not the number of minibatches.
  const std::vector<std::int64_t> batches{16, 20, 12, 8, 28, 12, 24, 8, 16};
  for (const bool groups : {false, true}) {
    for (const std::string reduce : {"tree", "chunked-tree", "sharded"}) {
      SCOPED_TRACE(testing::Message() << (groups ? "groups, " : "one group, ") << reduce);
      TrainOptions options = options_of("adascale");
      if (groups) options.groups = {no_decay_for_vectors()};
      options.epochs = 3;
      options.reference_batch_size = 6;
      options.optimizer = {.momentum = 0.9};
      options.cores = groups ? 8 : 3;
      options.reduce = reduce;
      const Loop loop = adascale_loop(batches, options);
      Trainer trainer = trainer_on(test::trace_of(batches), options);
      test::Recorder recorder;
      ASSERT_EQ(trained(trainer, recorder).steps.size(), batches.size());
      for (std::size_t i = 0; i < batches.size(); ++i) {
        EXPECT_NEAR(recorder.steps[i].gain, loop.gains[i], 1e-9 * loop.gains[i]) << i;
        EXPECT_NEAR(recorder.steps[i].learning_rate, 0.1 * loop.gains[i], 1e-9) << i;
        EXPECT_GT(loop.gains[i], 1);
      }
      for (std::size_t i = 0; i < loop.parameters.size(); ++i) {
        EXPECT_TRUE(
            at::allclose(trainer.parameters()[i].tensor, loop.parameters[i].detach(), 1e-9, 1e-12));
      }
    }
  }
}

TEST(AdaScaleInTheTrainer, StepsOfOneMinibatchKeepTheAverages) {
  Trainer trainer = trainer_on(test::trace_of({16, 4, 28}), [] {
    TrainOptions options = options_of("adascale");
    options.epochs = 1;
    return options;
  }());
  test::Recorder recorder;
  const auto& steps = trained(trainer, recorder).steps;
  EXPECT_GT(steps[0].gain, 1);
  EXPECT_EQ(steps[1].gain, 1) << "scale 1";
  EXPECT_GT(steps[2].gain, 1);
}

// All that may depend on the order of a sum, at once.
TEST(Techniques, HaveTheSameBitsForAllThreadsCoresAndExactReducers) {
  const auto train = [](std::int64_t cores, int threads, const std::string& reduce) {
    TrainOptions options = options_of("adascale:ramp=3");
    options.schedule = "cosine:total=2";
    options.optimizer = {.momentum = 0.9, .weight_decay = 0.01};
    options.groups = {no_decay_for_vectors()};
    options.lookahead = LookaheadOptions{.k = 2};
    options.clip_norm = 0.5;
    options.log_noise = true;
    options.cores = cores;
    options.threads = threads;
    options.reduce = reduce;
    Trainer trainer(builtin_model("mnist-cnn", {}), nll_loss(0.1), test::digits(300),
                    test::trace_of({8, 104, 24, 56}, TraceEnd::cycle), options);
    test::Recorder recorder;
    trainer.add_observer(recorder);
    trainer.fit();
    std::string all = test::state_bytes(trainer);
    for (const StepRecord& step : recorder.steps) {
      for (const double number : {step.learning_rate, step.gradient_norm.value(),
                                  step.noise_scale.value_or(-1), step.measured_gain.value_or(-1)}) {
        all.append(reinterpret_cast<const char*>(&number), sizeof number);
      }
    }
    return all;
  };
  const std::string expected = train(1, 1, "tree");
  for (const std::int64_t cores : {1, 3, 8, 64}) {
    for (const int threads : {1, 2, 4}) {
      for (const std::string reduce : {"tree", "chunked-tree", "sharded"}) {
        EXPECT_TRUE(train(cores, threads, reduce) == expected)
            << cores << " cores, " << threads << " threads, " << reduce;
      }
    }
  }
}

TEST(Noise, IsMeasuredForEveryRuleWhenAsked) {
  const auto steps_of = [](const std::string& rule, bool log_noise) {
    TrainOptions options = options_of(rule);
    options.log_noise = log_noise;
    Trainer trainer = trainer_on(test::trace_of({16, 4, 28}, TraceEnd::cycle), options);
    test::Recorder recorder;
    return trained(trainer, recorder).steps;
  };
  const auto adascale = steps_of("adascale", true);
  for (const StepRecord& step : adascale) EXPECT_EQ(step.measured_gain, step.gain);
  for (const std::string rule : {"constant", "linear-momentum"}) {
    const auto steps = steps_of(rule, true);
    EXPECT_EQ(steps[0].measured_gain, adascale[0].measured_gain) << "the same first gradients";
    EXPECT_GT(steps[2].noise_scale.value(), 0);
    const auto silent = steps_of(rule, false);
    EXPECT_FALSE(silent[2].noise_scale.has_value());
    EXPECT_FALSE(silent[2].measured_gain.has_value());
    EXPECT_EQ(silent[2].loss, steps[2].loss) << "measuring changes nothing";
  }
}

// --- schedules and the end of training ---

TEST(Schedules, AreMultipliedByTheRule) {
  TrainOptions options = options_of("linear");
  options.epochs = 3;
  options.schedule = "step:every=1,gamma=0.5";
  Trainer trainer = trainer_on(test::trace_of({8, 40}, TraceEnd::cycle), options);
  test::Recorder recorder;
  EXPECT_THAT(rates_of(trained(trainer, recorder)),
              Pointwise(DoubleEq(), {0.2, 1.0, 0.1, 0.5, 0.05, 0.25}));
}

TEST(Schedules, CountWhatTheyAreTold) {
  const auto rates = [](ScheduleUnit unit, const std::string& schedule) {
    TrainOptions options = options_of("root");
    options.epochs = 2;
    options.schedule = schedule;
    options.schedule_unit = unit;
    Trainer trainer = trainer_on(test::trace_of({16, 32}, TraceEnd::cycle), options);
    test::Recorder recorder;
    return rates_of(trained(trainer, recorder));
  };
  const double small = 0.1 * 2;
  const double large = 0.1 * std::sqrt(8.0);
  EXPECT_THAT(rates(ScheduleUnit::steps, "warmup:length=4"),
              Pointwise(DoubleEq(), {0.0, large / 4, small / 2, large * 3 / 4}));
  EXPECT_THAT(rates(ScheduleUnit::samples, "warmup:length=96"),
              Pointwise(DoubleEq(), {0.0, large / 6, small / 2, large * 2 / 3}));
  // A step of the root rule counts for the root of its scale.
  const double cycle = 2 + std::sqrt(8.0);
  EXPECT_THAT(rates(ScheduleUnit::iterations, "warmup:length=100"),
              Pointwise(DoubleNear(1e-15),
                        {0.0, large * 0.02, small * cycle / 100, large * (cycle + 2) / 100}));
}

TEST(Schedules, MayBeTheUsersOwn) {
  TrainOptions options = options_of("constant");
  options.epochs = 3;
  options.own_schedule = [] {
    return std::make_unique<LambdaSchedule>([](double epoch) { return 1 / (1 + epoch); });
  };
  Trainer trainer = trainer_on(Trace::constant(48), options);
  test::Recorder recorder;
  EXPECT_THAT(rates_of(trained(trainer, recorder)), Pointwise(DoubleEq(), {0.1, 0.05, 0.1 / 3}));
}

TEST(Schedules, OnAPlateauHearTheWatchedMetric) {
  // Nothing is learned, so nothing improves.
  TrainOptions options = options_of("constant");
  options.epochs = 5;
  options.learning_rate = 1e-30;
  options.schedule = "plateau:patience=1,factor=0.5";
  options.watch = Metric::test_loss;
  Trainer trainer = trainer_on(Trace::constant(48), options);
  trainer.set_test(dataset());
  test::Recorder recorder;
  EXPECT_THAT(rates_of(trained(trainer, recorder)),
              Pointwise(DoubleEq(), {1e-30, 1e-30, 1e-30, 0.5e-30, 0.5e-30}));

  Trainer without_test = trainer_on(Trace::constant(48), options);
  EXPECT_THAT(error_of([&] { without_test.fit(); }), HasSubstr("there is no test set"));
  options.watch = Metric::train_loss;
  Trainer on_training = trainer_on(Trace::constant(48), options);
  EXPECT_EQ(error_of([&] { on_training.fit(); }), "no error");
}

TEST(Iterations, EndTrainingWhenTheyAreReached) {
  TrainOptions options = options_of("linear");
  options.epochs = 100;
  options.iterations = 17;  // an epoch is 12 of them: 2, then 10
  Trainer trainer = trainer_on(test::trace_of({8, 40}, TraceEnd::cycle), options);
  trainer.set_test(dataset());
  test::Recorder recorder;
  trainer.add_observer(recorder);
  const TrainResult result = trainer.fit();
  EXPECT_EQ(result.steps, 4);
  EXPECT_EQ(result.iterations, 24);
  EXPECT_EQ(result.stopped, "17 iterations reached");
  EXPECT_EQ(recorder.steps[2].iterations, 14);

  // In the middle of an epoch, which is then evaluated as any other.
  options.iterations = 14;
  Trainer shorter = trainer_on(test::trace_of({8, 40}, TraceEnd::cycle), options);
  shorter.set_test(dataset());
  test::Recorder of_shorter;
  shorter.add_observer(of_shorter);
  EXPECT_EQ(shorter.fit().steps, 3);
  ASSERT_EQ(of_shorter.epochs.size(), 2U);
  EXPECT_EQ(of_shorter.epochs[1].steps, 1);
  EXPECT_EQ(of_shorter.epochs[1].samples, 8);
  EXPECT_DOUBLE_EQ(of_shorter.epochs[1].train_loss, of_shorter.steps[2].loss);
  EXPECT_TRUE(of_shorter.epochs[1].test.has_value());
}

TEST(PatienceReference, StopsWhereTheReferenceStops) {
  std::ifstream file(RUBATO_SHARED_DIR "/reference/schedules.json");
  if (!file) GTEST_SKIP() << "no " RUBATO_SHARED_DIR "/reference/schedules.json here";
  const auto run = nlohmann::json::parse(file).at("early_stopping");
  Patience patience({.patience = run.at("patience"), .delta = run.at("delta")});
  for (std::size_t i = 0; i < run.at("metrics").size(); ++i) {
    EXPECT_EQ(patience.is_over_after(run.at("metrics").at(i)), run.at("stop").at(i).get<bool>())
        << i;
  }
}

TEST(Patience, KnowsModesAndDelta) {
  Patience highest({.patience = 2, .delta = 0.1, .mode = MetricMode::max});
  EXPECT_FALSE(highest.is_over_after(0.5));
  EXPECT_TRUE(highest.improved());
  EXPECT_FALSE(highest.is_over_after(0.55)) << "not by more than delta";
  EXPECT_FALSE(highest.improved());
  EXPECT_FALSE(highest.is_over_after(0.65));
  EXPECT_TRUE(highest.improved());
  EXPECT_FALSE(highest.is_over_after(std::nan("")));
  EXPECT_TRUE(highest.is_over_after(0.1));
  EXPECT_EQ(highest.best(), 0.65);
  EXPECT_THAT(error_of([] { static_cast<void>(Patience({.patience = 0})); }),
              HasSubstr("patience 0"));
  EXPECT_THAT(error_of([] { static_cast<void>(Patience({.delta = -1})); }), HasSubstr("delta -1"));
}

TEST(EarlyStopping, StopsTheTrainer) {
  TrainOptions options = options_of("constant");
  options.epochs = 20;
  options.learning_rate = 1e-30;
  Trainer trainer = trainer_on(Trace::constant(48), options);
  trainer.set_test(dataset());
  EarlyStopping stopping(trainer, Metric::test_loss, {.patience = 3});
  trainer.add_observer(stopping);
  const TrainResult result = trainer.fit();
  EXPECT_EQ(result.epochs, 4);
  EXPECT_EQ(result.stopped, "test-loss no longer improves");
}

TEST(BestWeights, AreThoseOfTheBestEpoch) {
  TrainOptions options = options_of("constant");
  options.epochs = 4;
  Trainer trainer = trainer_on(Trace::constant(48), options);
  trainer.set_test(dataset());
  int calls = 0;
  BestWeights best(trainer, Metric::test_loss, [&] { ++calls; });
  EXPECT_FALSE(best.value().has_value());
  trainer.add_observer(best);
  std::vector<std::vector<at::Tensor>> after_epoch;
  class Keeper : public Observer {
   public:
    Keeper(const Trainer& trainer, std::vector<std::vector<at::Tensor>>& kept)
        : trainer_(trainer), kept_(kept) {}
    void on_epoch(const EpochRecord&) override {
      kept_.push_back(test::copies_of(trainer_.parameters()));
    }

   private:
    const Trainer& trainer_;
    std::vector<std::vector<at::Tensor>>& kept_;
  } keeper(trainer, after_epoch);
  trainer.add_observer(keeper);
  // Better for three epochs, and then worse.
  class Spoiler : public Observer {
   public:
    explicit Spoiler(Trainer& trainer) : trainer_(trainer) {}
    void on_epoch_begin(const EpochPlan& epoch) override {
      if (epoch.index.value() == 3) trainer_.parameters()[2].tensor.mul_(-1);
    }

   private:
    Trainer& trainer_;
  } spoiler(trainer);
  trainer.add_observer(spoiler);
  trainer.fit();
  EXPECT_EQ(best.epoch(), EpochIndex{2});
  EXPECT_EQ(calls, 3);
  ASSERT_EQ(best.parameters().size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(best.parameters()[i].name, trainer.parameters()[i].name);
    EXPECT_TRUE(at::equal(best.parameters()[i].tensor, after_epoch[2][i]));
  }
}

// --- what the update is made of ---

TEST(Clipping, ShortensTheMeanGradient) {
  for (const std::string rule : {"constant", "linear-momentum"}) {
    TrainOptions options = options_of(rule);
    options.epochs = 1;
    options.clip_norm = 0.01;
    Trainer trainer = trainer_on(Trace::constant(48), options);
    const auto before = test::copies_of(trainer.parameters());
    test::Recorder recorder;
    const StepRecord step = trained(trainer, recorder).steps[0];
    double square = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      square += (trainer.parameters()[i].tensor - before[i]).square().sum().item<double>();
    }
    EXPECT_GT(step.gradient_norm.value(), 0.1) << "before it was clipped";
    // The sum of twelve gradients, each at the rate of one.
    const double factor = 0.01 / (*step.gradient_norm + 1e-6);
    const double length = rule == "constant" ? *step.gradient_norm : 12 * *step.gradient_norm;
    EXPECT_NEAR(std::sqrt(square), 0.1 * factor * length, 1e-9) << rule;
  }
}

TEST(Clipping, LeavesShortGradientsAlone) {
  const auto train = [](std::optional<double> clip_norm) {
    TrainOptions options = options_of();
    options.clip_norm = clip_norm;
    Trainer trainer = trainer_on(Trace::constant(16), options);
    trainer.fit();
    return test::state_bytes(trainer);
  };
  EXPECT_TRUE(train(1e6) == train(std::nullopt));
}

TEST(Groups, OfVectorsDoNotDecay) {
  // No gradient at all: what changes is the decay alone.
  const Loss nothing = [](const at::Tensor& output, const at::Tensor&) {
    return (output * 0).sum();
  };
  const auto changed = [&](std::vector<ParameterGroup> groups) {
    TrainOptions options = options_of("constant");
    options.epochs = 1;
    options.optimizer = {.weight_decay = 0.5};
    options.groups = std::move(groups);
    Trainer trainer(model_factory<Net>(), nothing, dataset(), Trace::constant(48), options);
    const auto before = test::copies_of(trainer.parameters());
    trainer.fit();
    std::vector<bool> decayed;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const at::Tensor& now = trainer.parameters()[i].tensor;
      decayed.push_back(!at::equal(now, before[i]));
      if (decayed.back()) {
        EXPECT_TRUE(at::allclose(now, before[i] * 0.95, 1e-12, 0));
      }
    }
    return decayed;
  };
  // hidden.weight, hidden.bias, out.weight, out.bias
  EXPECT_THAT(changed({}), ElementsAre(true, true, true, true));
  EXPECT_THAT(changed({no_decay_for_vectors()}), ElementsAre(true, false, true, false));
  EXPECT_THAT(changed({no_decay_for("out.*")}), ElementsAre(true, true, false, false));
}

TEST(Optimizers, OfTheUsersOwnMakeTheUpdate) {
  const auto train = [](const std::function<void(TrainOptions&)>& change) {
    TrainOptions options = options_of();
    options.optimizer = {.momentum = 0.9};
    change(options);
    Trainer trainer = trainer_on(Trace::constant(16), options);
    trainer.fit();
    return test::copies_of(trainer.parameters());
  };
  const auto own = train([](TrainOptions& options) {
    options.own_optimizer = [](std::vector<torch::optim::OptimizerParamGroup> groups) {
      return std::make_unique<torch::optim::SGD>(std::move(groups),
                                                 torch::optim::SGDOptions(1).momentum(0.9));
    };
  });
  const auto fused = train([](TrainOptions&) {});
  const auto adam = train([](TrainOptions& o) { o.optimizer.kind = OptimizerKind::adam; });
  for (std::size_t i = 0; i < own.size(); ++i) {
    EXPECT_TRUE(at::allclose(own[i], fused[i], 1e-12, 1e-14));
    EXPECT_FALSE(at::allclose(adam[i], fused[i], 1e-3, 1e-3));
  }
}

TEST(Lars, TrainsInTheTrainer) {
  // One step by hand.
  TrainOptions options = options_of("constant");
  options.epochs = 1;
  options.optimizer = {.kind = OptimizerKind::lars, .weight_decay = 0.1, .trust = 0.02};
  Trainer trainer = trainer_on(Trace::constant(48), options);
  const auto before = test::copies_of(trainer.parameters());
  class Keeper : public Observer {
   public:
    bool wants_gradients(const StepPlan&) const override { return true; }
    void on_gradients(const StepPlan&, std::span<const NamedTensor> gradients) override {
      for (const NamedTensor& gradient : gradients) kept.push_back(gradient);
    }
    std::vector<NamedTensor> kept;
  } keeper;
  trainer.add_observer(keeper);
  trainer.fit();
  ASSERT_EQ(keeper.kept.size(), before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(keeper.kept[i].name, trainer.parameters()[i].name);
    const at::Tensor& w = before[i];
    const at::Tensor& g = keeper.kept[i].tensor;
    const double w_norm = w.norm().item<double>();
    const double local = 0.02 * w_norm / (g.norm().item<double>() + 0.1 * w_norm);
    EXPECT_TRUE(at::allclose(trainer.parameters()[i].tensor, w - 0.1 * local * (g + 0.1 * w), 1e-12,
                             1e-14));
  }
}

TEST(Trainer, RefusesWhatDoesNotGoTogether) {
  const auto error = [](const std::function<void(TrainOptions&)>& change) {
    TrainOptions options = options_of();
    change(options);
    return error_of([&] { trainer_on(Trace::constant(16), options); });
  };
  EXPECT_THAT(error([](auto& o) {
                o.rule = "linear-momentum";
                o.optimizer.kind = OptimizerKind::adam;
              }),
              HasSubstr("rule linear-momentum sums gradients"));
  EXPECT_THAT(error([](auto& o) { o.schedule = "cosine"; }), HasSubstr("cosine needs a 'total'"));
  EXPECT_THAT(error([](auto& o) { o.iterations = 0; }), HasSubstr("0 iterations"));
  EXPECT_THAT(error([](auto& o) { o.clip_norm = -1; }), HasSubstr("clipping to norm -1"));
  EXPECT_THAT(error([](auto& o) { o.top_k = -1; }), HasSubstr("top -1"));
  EXPECT_THAT(error([](auto& o) { o.lookahead = LookaheadOptions{.k = 0}; }), HasSubstr("k 0"));
  EXPECT_THAT(error([](auto& o) { o.optimizer.beta1 = 1; }), HasSubstr("beta1 1"));
}

TEST(Rules, OfTheUsersOwnAreFollowed) {
  TrainOptions options = options_of("twice");
  options.epochs = 1;
  options.rules.add("twice", [](const RuleInput&) { return 2.0; });
  Trainer trainer = trainer_on(Trace::constant(48), options);
  test::Recorder recorder;
  EXPECT_THAT(rates_of(trained(trainer, recorder)), ElementsAre(0.2));
}

// --- what is seen ---

TEST(Observers, HearEvaluationsAndStopTheTraining) {
  class Stopper : public Observer {
   public:
    explicit Stopper(Trainer& trainer) : trainer_(trainer) {}
    void on_step(const StepRecord& step) override {
      log += "s";
      if (step.plan.index.value() == 4) trainer_.stop("enough");
    }
    void on_evaluate(const EpochRecord& epoch) override { log += epoch.test ? "v" : "?"; }
    void on_epoch(const EpochRecord&) override { log += "e"; }
    std::string log;

   private:
    Trainer& trainer_;
  };
  TrainOptions options = options_of();
  options.epochs = 9;
  Trainer trainer = trainer_on(Trace::constant(16), options);
  trainer.set_test(dataset());
  Stopper stopper(trainer);
  trainer.add_observer(stopper);
  const TrainResult result = trainer.fit();
  EXPECT_EQ(stopper.log, "sssvessve");
  EXPECT_EQ(result.stopped, "enough");
  EXPECT_EQ(result.steps, 5);
}

TEST(Monitor, SeesParametersAndTheirMeanGradients) {
  TrainOptions options = options_of("constant");
  Trainer trainer = trainer_on(Trace::constant(16), options);
  const auto before = test::copies_of(trainer.parameters());
  std::vector<std::int64_t> steps;
  std::vector<TensorStatistics> first;
  Monitor monitor(trainer, "*.bias", 2,
                  [&](const StepPlan& step, std::span<const TensorStatistics> tensors) {
                    if (steps.empty()) first.assign(tensors.begin(), tensors.end());
                    steps.push_back(step.index.value());
                  });
  trainer.add_observer(monitor);
  std::vector<at::Tensor> after;
  test::Recorder recorder([&](const StepRecord&) {
    if (after.empty()) after = test::copies_of(trainer.parameters());
  });
  trained(trainer, recorder);
  EXPECT_THAT(steps, ElementsAre(0, 2, 4));
  ASSERT_EQ(first.size(), 4U);
  EXPECT_EQ(first[0].name, "hidden.bias");
  EXPECT_FALSE(first[0].gradient);
  EXPECT_DOUBLE_EQ(first[0].norm, before[1].norm().item<double>());
  EXPECT_DOUBLE_EQ(first[0].min, before[1].min().item<double>());
  EXPECT_EQ(first[1].name, "hidden.bias");
  EXPECT_TRUE(first[1].gradient);
  // Plain SGD: the gradient is the change.
  const at::Tensor gradient = (before[1] - after[1]) / 0.1;
  EXPECT_NEAR(first[1].norm, gradient.norm().item<double>(), 1e-12);
  EXPECT_NEAR(first[1].mean, gradient.mean().item<double>(), 1e-12);
  EXPECT_NEAR(first[1].max, gradient.max().item<double>(), 1e-12);

  EXPECT_THAT(error_of([&] { Monitor(trainer, "conv*", 1, {}); }),
              HasSubstr("no parameter matches 'conv*'; the model's are hidden.weight"));
  EXPECT_THAT(error_of([&] { Monitor(trainer, "*", 0, {}); }), HasSubstr("every 0 steps"));
}

TEST(TopK, CountsTargetsAmongTheLargest) {
  TrainOptions options = options_of();
  options.top_k = 2;
  Trainer trainer = trainer_on(Trace::constant(16), options);
  const TensorDataset data = dataset();
  const Evaluation evaluation = trainer.evaluate(data);
  const at::NoGradGuard no_grad;
  at::manual_seed(options.seed);
  Net net;
  const at::Tensor output = net.forward(data.inputs);
  // The smallest of three is not the target.
  const double expected = output.argmin(1).ne(data.targets).to(at::kDouble).mean().item<double>();
  EXPECT_DOUBLE_EQ(evaluation.top_k_accuracy.value(), expected);
  EXPECT_GT(expected, evaluation.accuracy.value());
  options.top_k = 99;
  EXPECT_EQ(trainer_on(Trace::constant(16), options).evaluate(data).top_k_accuracy, 1.0);
  options.top_k = 0;
  EXPECT_FALSE(trainer_on(Trace::constant(16), options).evaluate(data).top_k_accuracy.has_value());
}

TEST(LabelSmoothing, IsTorchsCrossEntropyForBothLosses) {
  at::manual_seed(1);
  const at::Tensor logits = at::randn({7, 5}, at::kDouble);
  const at::Tensor targets = at::tensor(std::vector<std::int64_t>{0, 1, 2, 3, 4, 0, 1});
  for (const double smoothing : {0.0, 0.1, 0.5}) {
    const double expected =
        at::cross_entropy_loss(logits, targets, {}, at::Reduction::Mean, -100, smoothing)
            .item<double>();
    EXPECT_DOUBLE_EQ(cross_entropy_loss(smoothing)(logits, targets).item<double>(), expected);
    EXPECT_NEAR(nll_loss(smoothing)(at::log_softmax(logits, 1), targets).item<double>(), expected,
                1e-12);
  }
  EXPECT_THAT(error_of([] { static_cast<void>(nll_loss(1)); }), HasSubstr("label smoothing 1"));
  EXPECT_THAT(error_of([] { static_cast<void>(cross_entropy_loss(-0.1)); }),
              HasSubstr("label smoothing -0.1"));
}

TEST(LabelSmoothing, MayBeOfTheTrainingAlone) {
  TrainOptions options = options_of();
  Trainer trainer(model_factory<Net>(), cross_entropy_loss(0.3), dataset(), Trace::constant(16),
                  options);
  const double smoothed = trainer.evaluate(dataset()).loss;
  trainer.set_test(dataset(), cross_entropy_loss());
  const double plain = trainer.evaluate(dataset()).loss;
  EXPECT_NE(plain, smoothed);
  EXPECT_DOUBLE_EQ(trainer_on(Trace::constant(16), options).evaluate(dataset()).loss, plain);
}

TEST(Bf16, ComputesInIt) {
  const auto train = [](Precision precision, int threads) {
    TrainOptions options{.epochs = 3, .learning_rate = 0.05, .threads = threads};
    options.precision = precision;
    Trainer trainer(builtin_model("mnist-cnn", {}), nll_loss(), test::digits(640),
                    Trace::constant(64), options);
    trainer.set_test(test::digits(500, 2));
    trainer.fit();
    for (const NamedTensor& named : trainer.parameters()) {
      EXPECT_EQ(named.tensor.scalar_type(), at::kFloat);
    }
    return std::pair(test::state_bytes(trainer), trainer.result().final_test->loss);
  };
  const auto [full_state, full_loss] = train(Precision::full, 2);
  const auto [bf16_state, bf16_loss] = train(Precision::bf16, 2);
  EXPECT_FALSE(full_state == bf16_state);
  // It learns as well; with weights from before an update it would not.
  EXPECT_NEAR(bf16_loss, full_loss, 0.1 * full_loss);
  EXPECT_TRUE(train(Precision::bf16, 1).first == bf16_state) << "on any number of threads";
  EXPECT_FALSE(at::autocast::is_cpu_enabled());
  EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
}

// --- initial values ---

class ConvNet : public torch::nn::Module {
 public:
  ConvNet() {
    register_module("linear", linear_);
    register_module("norm", norm_);
  }
  at::Tensor forward(const at::Tensor& x) { return norm_(linear_(x)); }

 private:
  torch::nn::Linear linear_{300, 200};
  torch::nn::BatchNorm1d norm_{200};
};

TEST(Initializers, FillTheWeightsAsTheyAreDefined) {
  const auto weight_of = [](const char* spec) {
    at::manual_seed(5);
    const Model model = make_model(std::make_shared<ConvNet>());
    initialize(model, parse_initializer(spec));
    EXPECT_EQ(model.parameters[1].tensor.abs().max().item<float>(), 0) << "bias";
    EXPECT_EQ(model.parameters[2].tensor.min().item<float>(), 1) << "scale of the norm";
    return model.parameters[0].tensor.detach();
  };
  const auto deviation = [](const at::Tensor& weight) { return weight.std().item<double>(); };
  const auto bound = [](const at::Tensor& weight) { return weight.abs().max().item<double>(); };
  // 300 inputs, 200 outputs.
  EXPECT_NEAR(bound(weight_of("xavier")), std::sqrt(6.0 / 500), 1e-4);
  EXPECT_NEAR(bound(weight_of("xavier:gain=2")), 2 * std::sqrt(6.0 / 500), 2e-4);
  EXPECT_NEAR(deviation(weight_of("xavier:distribution=normal")), std::sqrt(2.0 / 500), 1e-3);
  EXPECT_NEAR(bound(weight_of("msra")), std::sqrt(6.0 / 300), 1e-4);
  EXPECT_NEAR(bound(weight_of("msra:slope=1,fan=out")), std::sqrt(3.0 / 200), 1e-4);
  EXPECT_NEAR(deviation(weight_of("msra:distribution=normal")), std::sqrt(2.0 / 300), 1e-3);
  EXPECT_NEAR(deviation(weight_of("normal:mean=1,deviation=0.5")), 0.5, 0.01);
  EXPECT_NEAR(weight_of("normal:mean=1,deviation=0.5").mean().item<double>(), 1, 0.01);
  EXPECT_NEAR(weight_of("uniform:low=2,high=3").min().item<double>(), 2, 1e-3);
  EXPECT_NEAR(weight_of("uniform:low=2,high=3").max().item<double>(), 3, 1e-3);
  EXPECT_EQ(weight_of("one").min().item<float>(), 1);
  EXPECT_EQ(bound(weight_of("zero")), 0);
  const at::Tensor orthogonal = weight_of("orthogonal:gain=2").to(at::kDouble);
  EXPECT_TRUE(
      at::allclose(orthogonal.matmul(orthogonal.t()), 4 * at::eye(200, at::kDouble), 1e-4, 1e-4));
}

TEST(Initializers, ChangeNothingByDefaultAndFollowTheSeed) {
  const auto initial = [](const char* spec, std::uint64_t seed) {
    TrainOptions options = options_of();
    options.initializer = parse_initializer(spec);
    options.seed = seed;
    return test::state_bytes(trainer_on(Trace::constant(16), options));
  };
  at::manual_seed(7);
  std::string plain;
  for (const at::Tensor& tensor : Net().parameters()) plain += test::bytes_of(tensor.detach());
  EXPECT_TRUE(initial("default", 7) == plain);
  EXPECT_FALSE(initial("msra", 7) == plain);
  EXPECT_TRUE(initial("msra", 7) == initial("msra", 7));
  EXPECT_FALSE(initial("msra", 7) == initial("msra", 8));
}

TEST(RandomShift, MovesEachImageByItselfAndRepeatsTheEdge) {
  at::manual_seed(3);
  const at::Tensor images = at::arange(25, at::kFloat).reshape({1, 1, 5, 5}).repeat({200, 1, 1, 1});
  const at::Tensor moved = random_shift(1)(images);
  ASSERT_EQ(moved.sizes(), images.sizes());
  std::set<std::pair<int, int>> seen;
  for (std::int64_t i = 0; i < 200; ++i) {
    // The value in the middle says where the image went.
    const int middle = static_cast<int>(moved[i][0][2][2].item<float>());
    const int down = 2 - middle / 5;
    const int right = 2 - middle % 5;
    seen.emplace(down, right);
    for (int row = 0; row < 5; ++row) {
      for (int column = 0; column < 5; ++column) {
        EXPECT_EQ(moved[i][0][row][column].item<float>(),
                  static_cast<float>(5 * std::clamp(row - down, 0, 4) +
                                     std::clamp(column - right, 0, 4)));
      }
    }
  }
  EXPECT_EQ(seen.size(), 9);
  EXPECT_TRUE(at::equal(random_shift(0)(images), images));
  EXPECT_THROW(static_cast<void>(random_shift(-1)), Error);
  EXPECT_THROW(static_cast<void>(random_shift(1)(at::zeros({4, 5}))), Error);
}

}  // namespace
}  // namespace rubato
