#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <torch/optim/adam.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/loop/observers.hpp>

#include "small_run.hpp"
#include "support.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::dataset;
using test::Net;
using test::options_of;
using test::own_rule;
using test::trainer_on;

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
    TorchTrainer trainer(model_factory<Net>(), nothing, dataset(), Trace::constant(48), options);
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

// Answers whatever it is told to.
class Answering : public Rule {
 public:
  explicit Answering(Rates rates) : rates_(rates) {}
  std::string_view name() const override { return "mine"; }
  Rates rates(const RuleInput& input) override {
    EXPECT_EQ(input.group_count, 2U);
    EXPECT_EQ(input.layer_count, 4U);
    return input.batch_size == 16 ? Rates{.learning_rate = 0.1, .update_rate = 0.1} : rates_;
  }

 private:
  Rates rates_;
};

TEST(Rules, AreAskedForRatesThatCanBeApplied) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto error = [](const Rates& rates) {
    TrainOptions options =
        options_of(own_rule("mine", [rates](Spec&) { return std::make_unique<Answering>(rates); }));
    options.groups = {no_decay_for_vectors()};
    TorchTrainer trainer = trainer_on(test::trace_of({16, 32}, TraceEnd::cycle), options);
    std::string good;
    trainer.add_observer<test::Recorder>(
        [&](Training&, const StepRecord&) { good = test::state_bytes(trainer); });
    std::string message = error_of([&] { trainer.fit(); });
    if (message != "no error") {
      EXPECT_EQ(trainer.result().steps, 1);
      EXPECT_TRUE(test::state_bytes(trainer) == good) << "nothing is applied";
    }
    return message;
  };
  const Rates good{.learning_rate = 0.1, .update_rate = 0.1};
  const auto with = [&](auto change) {
    Rates rates = good;
    change(rates);
    return error(rates);
  };
  const std::string where =
      " at epoch 1, step 2 of the run; accepted: finite numbers of at least 0";
  EXPECT_EQ(error(good), "no error");
  EXPECT_EQ(with([](Rates& r) { r.learning_rate = 0; }), "no error");
  EXPECT_EQ(with([](Rates& r) { r.learning_rate = kNan; }),
            "rule mine gave the learning rate NaN" + where);
  EXPECT_EQ(with([](Rates& r) { r.update_rate = -1; }),
            "rule mine gave the rate of the update -1" + where);
  EXPECT_EQ(with([](Rates& r) { r.gain = kInfinity; }), "rule mine gave the gain infinite" + where);
  EXPECT_EQ(with([](Rates& r) { r.weight_decay_factor = kNan; }),
            "rule mine gave the factor on the weight decay NaN" + where);
  const std::vector<double> one{1};
  const std::vector<double> two{1, 2};
  const std::vector<double> four{1, 1, -2, 1};
  EXPECT_EQ(with([&](Rates& r) { r.group_factors = two; }), "no error");
  EXPECT_EQ(with([&](Rates& r) { r.group_factors = one; }),
            "rule mine gave 1 factor for 2 parameter groups at epoch 1, step 2 of the run; "
            "accepted: 2 or none");
  EXPECT_EQ(with([&](Rates& r) { r.layer_factors = two; }),
            "rule mine gave 2 factors for 4 parameter tensors at epoch 1, step 2 of the run; "
            "accepted: 4 or none");
  EXPECT_EQ(with([&](Rates& r) { r.layer_factors = four; }),
            "rule mine gave the factor of a parameter tensor -2" + where);
}

// Remembers what it sees of the tensors.
class SeeingLayers : public Rule {
 public:
  explicit SeeingLayers(std::vector<ParameterNorms>& seen) : seen_(seen) {}
  std::string_view name() const override { return "seeing"; }
  RuleNeeds needs() const override { return {.parameter_norms = true}; }
  Rates rates(const RuleInput& input) override {
    seen_.assign(input.layers.begin(), input.layers.end());
    return scaled(input, 1);
  }

 private:
  std::vector<ParameterNorms>& seen_;
};

TEST(Rules, SeeEachTensorWithTheWeightDecayOfItsGroup) {
  std::vector<ParameterNorms> seen;
  TrainOptions options =
      options_of(own_rule("seeing", [&](Spec&) { return std::make_unique<SeeingLayers>(seen); }));
  options.epochs = 1;
  options.optimizer = {.weight_decay = 0.5};
  const auto is = [](const char* name) {
    return [name](const NamedArray& named) { return named.name == name; };
  };
  options.groups = {
      no_decay_for("out.*"),
      {.name = "own decay", .takes = is("hidden.weight"), .options = {.weight_decay = 0.25}},
      {.name = "own rate", .takes = is("hidden.bias"), .options = {.learning_rate_factor = 2}}};
  TorchTrainer trainer = trainer_on(Trace::constant(48), options);
  const auto before = test::copies_of(trainer.parameters());
  trainer.fit();
  // hidden.weight, hidden.bias, out.weight, out.bias
  const std::vector<double> decay{0.25, 0.5, 0, 0};
  ASSERT_EQ(seen.size(), decay.size());
  for (std::size_t i = 0; i < decay.size(); ++i) {
    EXPECT_EQ(seen[i].weight_decay, decay[i]) << i;
    EXPECT_DOUBLE_EQ(seen[i].weight_square, before[i].square().sum().item<double>()) << i;
  }
}

TEST(Rules, OfAFunctionAreCheckedLikeAll) {
  const TrainOptions options = options_of(own_rule("twice", [](const RuleInput&) { return -1.0; }));
  EXPECT_THAT(error_of([&] { trainer_on(Trace::constant(48), options).fit(); }),
              HasSubstr("rule twice gave the learning rate -0.1 at epoch 1, step 1 of the run"));
}

class Broken : public LrSchedule {
 public:
  double factor(double) const override { return std::nan(""); }
};

TEST(OwnSchedule, IsNamedForTheFactorItGave) {
  TrainOptions options = options_of("linear");
  options.own_schedule = [] { return std::make_unique<Broken>(); };
  EXPECT_THAT(error_of([&] { trainer_on(Trace::constant(48), options).fit(); }),
              HasSubstr("schedule of your own gave the factor NaN at epoch 1, step 1 of the run"));
}

TEST(OwnOptimizer, IgnoresNothingSilently) {
  const auto error = [](const std::function<void(TrainOptions&)>& change) {
    TrainOptions options = options_of("constant");
    options.own_optimizer =
        torch_optimizer([](std::vector<torch::optim::OptimizerParamGroup> groups) {
          return std::make_unique<torch::optim::Adam>(std::move(groups));
        });
    change(options);
    return error_of([&] { trainer_on(Trace::constant(16), options); });
  };
  EXPECT_EQ(error([](auto&) {}), "no error");
  EXPECT_THAT(
      error([](auto& o) { o.optimizer.weight_decay = 0.1; }),
      HasSubstr("optimizer.weight_decay 0.1, which own_optimizer does not see; accepted: "));
  EXPECT_THAT(error([](auto& o) { o.groups = {no_decay_for_vectors()}; }),
              HasSubstr("parameter group 'vectors' has its own weight decay, which own_optimizer"));
  const auto error_of_group = [&](const GroupOptions& group) {
    return error([&](auto& o) {
      o.groups = {{.name = "some", .takes = [](const auto&) { return true; }, .options = group}};
    });
  };
  EXPECT_THAT(error_of_group({.momentum = 0.9}), HasSubstr("group 'some' has its own momentum, "));
  EXPECT_EQ(error_of_group({.learning_rate_factor = 2, .layer_wise = false}), "no error");
}

TEST(Monitor, SeesParametersAndTheirMeanGradients) {
  TrainOptions options = options_of("constant");
  TorchTrainer trainer = trainer_on(Trace::constant(16), options);
  const auto before = test::copies_of(trainer.parameters());
  std::vector<std::int64_t> steps;
  std::vector<TensorStatistics> first;
  const auto keep = [&](const StepPlan& step, std::span<const TensorStatistics> tensors) {
    if (steps.empty()) first.assign(tensors.begin(), tensors.end());
    steps.push_back(step.index.value());
  };
  trainer.add_observer<Monitor>("*.bias", 2, keep);
  std::vector<at::Tensor> after;
  trainer.add_observer<test::Recorder>([&](Training&, const StepRecord&) {
    if (after.empty()) after = test::copies_of(trainer.parameters());
  });
  trainer.fit();
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

  EXPECT_THAT(error_of([&] { trainer.add_observer<Monitor>("conv*", 1, keep); }),
              HasSubstr("no parameter matches 'conv*'; the model's are hidden.weight"));
  EXPECT_THAT(error_of([&] { Monitor("*", 0, {}); }), HasSubstr("every 0 steps"));
}

TEST(TopK, CountsTargetsAmongTheLargest) {
  TrainOptions options = options_of();
  options.top_k = 2;
  TorchTrainer trainer = trainer_on(Trace::constant(16), options);
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

TEST(Bf16, IsRefusedWhereItsKernelsAreHeldBack) {
  test::AllOptions options;
  options.torch.precision = Precision::bf16;
  const std::string error = error_of([&] {
    const TorchTrainer trainer(builtin_model("softmax", {}), nll_loss(), test::digits(64),
                               Trace::constant(32), options, options.torch);
  });
  EXPECT_THAT(error, has_bf16_kernels() ? HasSubstr("no error") : HasSubstr("ONEDNN_MAX_CPU_ISA"));
}

}  // namespace
}  // namespace rubato
