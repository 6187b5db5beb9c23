#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/linear.h>

#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "small_run.hpp"
#include "support.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::AllOptions;
using test::dataset;
using test::Net;
using test::options_of;
using test::trainer_on;

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
  EXPECT_THAT(error_of([] { return nll_loss(1); }), HasSubstr("label smoothing 1"));
  EXPECT_THAT(error_of([] { return cross_entropy_loss(-0.1); }), HasSubstr("label smoothing -0.1"));
}

TEST(LabelSmoothing, MayBeOfTheTrainingAlone) {
  TrainOptions options = options_of();
  TorchTrainer trainer(model_factory<Net>(), cross_entropy_loss(0.3), dataset(),
                       Trace::constant(16), options);
  const double smoothed = trainer.evaluate(dataset()).loss;
  trainer.set_test(dataset(), cross_entropy_loss());
  const double plain = trainer.evaluate(dataset()).loss;
  EXPECT_NE(plain, smoothed);
  EXPECT_DOUBLE_EQ(trainer_on(Trace::constant(16), options).evaluate(dataset()).loss, plain);
}

// PyTorch's reductions, of what ClassWeights say.
at::Tensor torchs_cross_entropy(const at::Tensor& logits, const at::Tensor& targets,
                                const ClassWeights& classes, double smoothing) {
  const at::Tensor weights =
      classes.weights.empty() ? at::Tensor() : at::tensor(classes.weights, at::kDouble);
  return at::cross_entropy_loss(logits.flatten(0, -2), targets.flatten(), weights,
                                at::Reduction::Mean, classes.ignore.value_or(-100), smoothing);
}

const std::vector<ClassWeights> kClassWeights{{.ignore = -100},
                                              {.ignore = 1},
                                              {.weights = {0.5, 2, 0, 1}},
                                              {.ignore = 3, .weights = {1, 3, 0.25, 7}}};

TEST(ClassWeights, AreTorchsForBothLosses) {
  at::manual_seed(1);
  const at::Tensor logits = at::randn({5, 6, 4}, at::kDouble);
  at::Tensor targets = at::randint(4, {5, 6}, at::kLong);
  for (const ClassWeights& classes : kClassWeights) {
    if (classes.ignore == -100) targets.select(1, 2).fill_(-100);
    if (classes.ignore != -100) targets.clamp_(0);
    for (const double smoothing : {0.0, 0.2}) {
      const double expected =
          torchs_cross_entropy(logits, targets, classes, smoothing).item<double>();
      EXPECT_DOUBLE_EQ(cross_entropy_loss(classes, smoothing)(logits, targets).item<double>(),
                       expected);
      EXPECT_DOUBLE_EQ(
          nll_loss(classes, smoothing)(at::log_softmax(logits, 2), targets).item<double>(),
          expected);
    }
  }
  EXPECT_THAT(error_of([] {
                return cross_entropy_loss({.weights = {1, -1}});
              }),
              HasSubstr("class weights 1/-1: accepted are finite ones of at least 0"));
  EXPECT_EQ(error_of([&] {
              return nll_loss({.weights = {1, 2}})(logits, targets);
            }),
            "2 class weights, and outputs of 4 classes; accepted: one for each");
  // What is of no class is an error where nobody ignores it, and not another mean.
  targets[0][0] = -100;
  for (const Loss& loss : {cross_entropy_loss(), nll_loss(), nll_loss({.weights = {1, 1, 1, 1}})}) {
    EXPECT_EQ(error_of([&] { return loss(logits, targets); }),
              "a target is -100, which is not a class; accepted: classes from 0, and the one that "
              "the loss "
              "ignores, as with --loss cross-entropy:ignore=-100");
  }
}

// Targets that are probabilities of the classes.

at::Tensor probabilities_like(const at::Tensor& logits) {
  return at::softmax(at::randn(logits.sizes(), logits.options()), 1);
}

TEST(Probabilities, HaveTorchsCrossEntropy) {
  at::manual_seed(1);
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{7, 4}, std::vector<std::int64_t>{3, 4, 2}}) {
    const at::Tensor logits = at::randn(shape, at::kDouble);
    const at::Tensor targets = probabilities_like(logits);
    for (const double smoothing : {0.0, 0.2}) {
      for (const ClassWeights& classes :
           {ClassWeights(), ClassWeights{.weights = {0.5, 2, 0, 1}}}) {
        const at::Tensor weights =
            classes.weights.empty() ? at::Tensor() : at::tensor(classes.weights, at::kDouble);
        EXPECT_DOUBLE_EQ(
            cross_entropy_loss(classes, smoothing)(logits, targets).item<double>(),
            at::cross_entropy_loss(logits, targets, weights, at::Reduction::Mean, -100, smoothing)
                .item<double>());
      }
    }
  }
}

TEST(Probabilities, OfOneClassAreThatClass) {
  const at::Tensor logits = at::randn({7, 4}, at::kDouble);
  const at::Tensor classes = at::tensor(std::vector<std::int64_t>{0, 1, 2, 3, 0, 1, 3});
  const at::Tensor targets = at::one_hot(classes, 4).to(at::kDouble);
  for (const double smoothing : {0.0, 0.2}) {
    const Loss loss = cross_entropy_loss(smoothing);
    EXPECT_NEAR(loss(logits, targets).item<double>(), loss(logits, classes).item<double>(), 1e-12);
  }
}

TEST(Probabilities, SumToOneInFloat32) {
  const at::Tensor logits = at::zeros({3, 4});
  const at::Tensor targets = at::full({3, 4}, 0.25);
  const auto error_with = [&](std::int64_t row, double more) {
    at::Tensor changed = targets.clone();
    changed[row][2] += more;
    return error_of([&] { return cross_entropy_loss()(logits, changed); });
  };
  EXPECT_EQ(error_with(0, 0.00005), "no error");
  EXPECT_EQ(error_with(2, 0.25),
            "cross-entropy takes real targets as probabilities of the classes, and those at [2] of "
            "the minibatch sum to 1.25; accepted: at least 0 and with a sum of 1, or integers, "
            "which are classes");
  EXPECT_THAT(error_with(1, -0.5), HasSubstr("those at [1] of the minibatch have -0.25; "));
  EXPECT_THAT(error_with(1, std::numeric_limits<double>::quiet_NaN()), HasSubstr("[1]"));
}

TEST(Probabilities, HaveTheShapeOfTheOutputs) {
  const at::Tensor logits = at::zeros({3, 4});
  const auto error_with = [&](const Loss& loss, const at::Tensor& targets) {
    return error_of([&] { return loss(logits, targets); });
  };
  EXPECT_EQ(error_with(cross_entropy_loss(), at::full({3, 2}, 0.5)),
            "cross-entropy compares outputs and targets one by one, and outputs are [3, 4] and "
            "targets [3, 2]; accepted: targets of the outputs' shape, or integers, which are "
            "classes");
  EXPECT_EQ(error_of([] { return cross_entropy_loss()(at::zeros({3}), at::ones({3})); }),
            "real targets of [3] are not rows of probabilities; accepted: [samples, classes], or "
            "integers, which are classes");
  EXPECT_EQ(error_with(cross_entropy_loss({.ignore = 3}), at::full({3, 4}, 0.25)),
            "targets are probabilities, of which no class is ignored, and the loss ignores 3; "
            "accepted: integers, which are classes, or a loss that ignores none");
  EXPECT_EQ(error_with(cross_entropy_loss({.weights = {1, 2}}), at::full({3, 4}, 0.25)),
            "2 class weights, and outputs of 4 classes; accepted: one for each");
}

TEST(Probabilities, AreTrainedOnToTheSameBitsOfEveryNumberOfThreads) {
  TensorDataset soft = dataset();
  soft.targets = 0.9 * at::one_hot(soft.targets, 3).to(at::kDouble) + 0.1 / 3;
  std::string bytes;
  for (const int threads : {1, 2, 3}) {
    TrainOptions options = options_of();
    options.threads = threads;
    options.top_k = 2;
    options.perplexity = true;
    TorchTrainer trainer(model_factory<Net>(), cross_entropy_loss(0.1), soft, Trace::constant(16),
                         options);
    trainer.set_test(soft, cross_entropy_loss());
    const Evaluation found = trainer.fit().final_test.value();
    EXPECT_EQ(found.accuracy, trainer.evaluate(dataset()).accuracy) << "against the largest";
    EXPECT_GE(found.top_k_accuracy.value(), found.accuracy.value());
    EXPECT_FALSE(found.perplexity) << "is of class indices";
    if (bytes.empty()) bytes = test::state_bytes(trainer);
    EXPECT_EQ(test::state_bytes(trainer), bytes) << threads;
  }
}

TEST(Probabilities, OfTrainingDataAreRefusedWithTheirNumber) {
  TensorDataset soft = dataset();
  soft.targets = at::one_hot(soft.targets, 3).to(at::kDouble);
  soft.targets[41][0] = 3;
  EXPECT_THAT(error_of([&] {
                return TorchTrainer(model_factory<Net>(), cross_entropy_loss(), soft,
                                    Trace::constant(16), options_of());
              }),
              StartsWith("training data: the targets at [41] sum to "));
}

// The class of each token, in double precision.
struct Tagger : torch::nn::Module {
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(3, 4));

  Tagger() { to(at::kDouble); }
  at::Tensor forward(const at::Tensor& x) { return linear(x); }
};

// 96 sequences of 1 to 7 tokens, behind which -100 stands; the first minibatch of eight has none.
TensorDataset sequences() {
  at::manual_seed(2);
  const at::Tensor targets = at::randint(4, {96, 7}, at::kLong);
  for (std::int64_t i = 0; i < 96; ++i) targets[i].narrow(0, i % 7 + 1, 6 - i % 7).fill_(-100);
  targets.narrow(0, 40, 8).fill_(-100);
  return {.inputs = at::randn({96, 7, 3}, at::kDouble), .targets = targets};
}

// 8 % off at minibatch 8, and 46 % at 1, where each minibatch had its own mean.
TEST(ClassWeights, AreThoseOfTheWholeStepAtEveryMinibatchSize) {
  for (const ClassWeights& classes :
       {ClassWeights{.ignore = -100}, ClassWeights{.ignore = -100, .weights = {0.5, 2, 0, 1}}}) {
    const auto data = sequences();
    std::vector<at::Tensor> expected;
    double expected_loss = 0;
    for (const std::int64_t minibatch : {96, 8, 1}) {
      TrainOptions options = options_of("constant");
      options.epochs = 1;
      options.minibatch_size = minibatch;
      options.reference_batch_size = 96;
      TorchTrainer trainer(model_factory<Tagger>(), cross_entropy_loss(classes), data,
                           Trace::constant(96), options);
      if (expected.empty()) {
        std::vector<at::Tensor> leaves;
        for (const NamedTensor& named : trainer.parameters()) {
          leaves.push_back(named.tensor.detach().clone().requires_grad_());
        }
        const at::Tensor loss = torchs_cross_entropy(at::linear(data.inputs, leaves[0], leaves[1]),
                                                     data.targets, classes, 0);
        loss.backward();
        expected_loss = loss.item<double>();
        for (const at::Tensor& leaf : leaves) expected.push_back(leaf.detach() - 0.1 * leaf.grad());
      }
      const auto recorder = test::recorded(trainer);
      for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_LT((trainer.parameters()[i].tensor - expected[i]).abs().max().item<double>(), 1e-14)
            << minibatch;
      }
      EXPECT_NEAR(recorder->steps.at(0).loss, expected_loss, 1e-13);
    }
  }
}

// Of a data set's samples alike: what has no weight is in no mean and no share.
TEST(ClassWeights, CountInTestsToo) {
  const TensorDataset data = sequences();
  const ClassWeights classes{.ignore = -100, .weights = {0.5, 2, 0, 1}};
  TorchTrainer trainer(model_factory<Tagger>(), cross_entropy_loss(classes), data,
                       Trace::constant(16), options_of());
  const Evaluation found = trainer.evaluate(data);
  const auto& parameters = trainer.parameters();
  const at::Tensor logits = at::linear(data.inputs, parameters[0].tensor, parameters[1].tensor);
  EXPECT_NEAR(found.loss, torchs_cross_entropy(logits, data.targets, classes, 0).item<double>(),
              1e-13);
  const at::Tensor counted = data.targets.ge(0).logical_and(data.targets.ne(2));
  const at::Tensor right = logits.argmax(2).eq(data.targets).logical_and(counted);
  EXPECT_DOUBLE_EQ(found.accuracy.value(),
                   right.sum().item<double>() / counted.sum().item<double>());
  // Also where what is ignored is a class.
  TorchTrainer ignoring(model_factory<Tagger>(), cross_entropy_loss({.ignore = 1}),
                        TensorDataset{.inputs = data.inputs, .targets = data.targets.clamp(0)},
                        Trace::constant(16), options_of());
  const auto& weights = ignoring.parameters();
  const at::Tensor scores = at::linear(data.inputs, weights[0].tensor, weights[1].tensor);
  const at::Tensor classes_of_data = data.targets.clamp(0);
  const at::Tensor some = classes_of_data.ne(1);
  const at::Tensor good = scores.argmax(2).eq(classes_of_data).logical_and(some);
  EXPECT_DOUBLE_EQ(
      ignoring.evaluate(TensorDataset{.inputs = data.inputs, .targets = classes_of_data})
          .accuracy.value(),
      good.sum().item<double>() / some.sum().item<double>());
  const TensorDataset nothing{.inputs = data.inputs.narrow(0, 40, 8),
                              .targets = data.targets.narrow(0, 40, 8)};
  EXPECT_EQ(error_of([&] { return trainer.evaluate(nothing); }),
            "nothing in the 8 samples has weight in the loss; accepted: samples some of which have "
            "weight");
}

// In float16 the mean of a minibatch is differentiated: a sum over many tokens would overflow.
TEST(ClassWeights, WorkInReducedPrecision) {
  const TensorDataset exact = sequences();
  const TensorDataset data{.inputs = exact.inputs.to(at::kFloat), .targets = exact.targets};
  const auto factory = [] {
    auto tagger = std::make_shared<Tagger>();
    tagger->to(at::kFloat);
    return make_model(tagger);
  };
  const auto train = [&](Precision precision) {
    AllOptions options = options_of("constant");
    options.minibatch_size = 8;
    options.torch.precision = precision;
    TorchTrainer trainer(factory, cross_entropy_loss({.ignore = -100}), data, Trace::constant(16),
                         options, options.torch);
    const auto recorder = test::recorded(trainer);
    for (const StepRecord& step : recorder->steps) {
      EXPECT_GT(step.weight.value(), 0);
      EXPECT_TRUE(step.applied);
    }
    return test::copies_of(trainer.parameters());
  };
  const auto full = train(Precision::full);
  const auto differ_by_at_most = [&](Precision precision, double most) {
    const auto reduced = train(precision);
    for (std::size_t i = 0; i < full.size(); ++i) {
      EXPECT_LT((full[i] - reduced[i]).abs().max().item<double>(), most);
    }
  };
  differ_by_at_most(Precision::fp16, 2e-3);
  if (!has_bf16_kernels()) GTEST_SKIP() << "ONEDNN_MAX_CPU_ISA keeps oneDNN from its kernels";
  differ_by_at_most(Precision::bf16, 2e-2);
}

TEST(WeightedLosses, AreFunctionsOfTheUsersOwn) {
  const Loss sum = [](const at::Tensor& output, const at::Tensor& target) -> LossValue {
    return {at::cross_entropy_loss(output, target, {}, at::Reduction::Sum),
            at::tensor(static_cast<double>(target.size(0)))};
  };
  const auto train = [](const Loss& loss) {
    TorchTrainer trainer(model_factory<Net>(), loss, dataset(), Trace::constant(16), options_of());
    trainer.fit();
    return test::copies_of(trainer.parameters());
  };
  const auto expected = train(cross_entropy_loss());
  const auto found = train(sum);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_LT((found[i] - expected[i]).abs().max().item<double>(), 1e-12);
  }
  const Loss with_outputs = [](const at::Tensor& output, const at::Tensor& target) -> LossValue {
    return {at::cross_entropy_loss(output, target), output};
  };
  EXPECT_THAT(error_of([&] { train(with_outputs); }),
              HasSubstr("the loss returns two tensors, the second of shape [4, 3]; accepted: one "
                        "number, the mean over the samples, or two, a sum and its weight"));
}

}  // namespace
}  // namespace rubato
