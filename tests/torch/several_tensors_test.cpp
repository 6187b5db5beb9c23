#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/testing.hpp>

#include "support.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {

namespace {

constexpr std::int64_t kSamples = 96;

at::Tensor numbers(std::int64_t columns, std::int64_t from) {
  return at::sin(at::arange(from, from + kSamples * columns).to(at::kFloat))
      .view({kSamples, columns});
}

const at::Tensor& features() {
  static const at::Tensor values = numbers(4, 0);
  return values;
}
const at::Tensor& wanted() {
  static const at::Tensor values = numbers(6, 1000);
  return values;
}

// 4 to 6.
struct Whole : torch::nn::Module {
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(4, 6));
  at::Tensor forward(const at::Tensor& x) { return linear->forward(x); }
};
// The same of inputs in two halves, and with outputs in two halves.
struct Halves : torch::nn::Module {
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(4, 6));
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& left, const at::Tensor& right) {
    const at::Tensor y = linear->forward(at::cat({left, right}, 1));
    return {y.narrow(1, 0, 2), y.narrow(1, 2, 4)};
  }
};
// The same by lists.
struct Lists : torch::nn::Module {
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(4, 6));
  Tensors forward(const Tensors& inputs) {
    const at::Tensor y = linear->forward(at::cat(inputs, 1));
    return {y.narrow(1, 0, 2), y.narrow(1, 2, 4)};
  }
};

std::shared_ptr<const Dataset> halves() {
  return make_dataset({features().narrow(1, 0, 2), features().narrow(1, 2, 2)},
                      {wanted().narrow(1, 0, 2), wanted().narrow(1, 2, 4)});
}

Loss loss_of_halves() {
  return [](const Tensors& outputs, const Tensors& targets) {
    return at::mse_loss(at::cat(outputs, 1), at::cat(targets, 1));
  };
}

TrainOptions short_training() {
  TrainOptions options;
  options.epochs = 2;
  options.minibatch_size = 8;
  options.threads = 2;
  options.cores = 3;
  return options;
}

std::vector<at::Tensor> weights_of_trained(TorchTrainer trainer) {
  trainer.fit();
  std::vector<at::Tensor> weights;
  for (const NamedTensor& parameter : trainer.parameters())
    weights.push_back(parameter.tensor.clone());
  return weights;
}

std::vector<at::Tensor> trained_plainly(const TorchOptions& torch = {}) {
  return weights_of_trained({model_factory<Whole>(), mse_loss(),
                             TensorDataset{features(), wanted()}, test::trace_of({24}),
                             short_training(), torch});
}

template <class Module>
std::vector<at::Tensor> trained_in_halves(const TorchOptions& torch = {}) {
  return weights_of_trained({model_factory<Module>(), loss_of_halves(), halves(),
                             test::trace_of({24}), short_training(), torch});
}

void expect_same(const std::vector<at::Tensor>& one, const std::vector<at::Tensor>& other) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], other[i])) << i;
}

TEST(SeveralTensors, AreWhatOneTensorOfThemIs) {
  const auto plain = trained_plainly();
  expect_same(trained_in_halves<Halves>(), plain);
  expect_same(trained_in_halves<Lists>(), plain);
}

TEST(SeveralTensors, AreRoundedInHalfPrecisionAsOneIs) {
  const TorchOptions half{.precision = Precision::fp16};
  const auto plain = trained_plainly(half);
  expect_same(trained_in_halves<Halves>(half), plain);
  EXPECT_FALSE(at::equal(plain.front(), trained_plainly().front()));
}

TEST(SeveralTensors, AreATupleOfTorchScript) {
  torch::jit::Module module("Halves");
  module.register_parameter("weight", Whole().linear->weight.detach().clone().requires_grad_(),
                            false);
  module.define(
      "def forward(self, left, right):\n"
      "  y = torch.matmul(torch.cat([left, right], 1), self.weight.t())\n"
      "  return y[:, :2], y[:, 2:]\n");
  const auto weights = weights_of_trained(
      {script_factory(module), loss_of_halves(), halves(), test::trace_of({24}), short_training()});
  EXPECT_FALSE(at::equal(weights.front(), module.attr("weight").toTensor()));
  // Of a dictionary they are its values, in their order.
  torch::jit::Module named("Named");
  named.register_parameter(
      "weight", module.attr("weight").toTensor().detach().clone().requires_grad_(), false);
  named.define(
      "def forward(self, left, right):\n"
      "  y = torch.matmul(torch.cat([left, right], 1), self.weight.t())\n"
      "  return {\"z\": y[:, :2], \"a\": y[:, 2:]}\n");
  const auto of_named = weights_of_trained(
      {script_factory(named), loss_of_halves(), halves(), test::trace_of({24}), short_training()});
  expect_same(of_named, weights);
  torch::jit::Module number("Number");
  number.register_parameter("weight", at::ones({1}).requires_grad_(), false);
  number.define("def forward(self, x):\n  return 3\n");
  EXPECT_THAT(error_of([&] { return make_model(number).forward(at::ones({1})); }),
              HasSubstr("returned Int; accepted: a tensor, or a tuple, list or dictionary of "
                        "tensors"));
}

TEST(SeveralTensors, AreEvaluatedTogether) {
  TorchTrainer trainer(model_factory<Halves>(), loss_of_halves(), halves(), test::trace_of({24}),
                       short_training());
  trainer.set_test(halves());
  const TrainResult result = trainer.fit();
  ASSERT_TRUE(result.final_test.has_value());
  EXPECT_EQ(result.final_test->samples, kSamples);
  EXPECT_EQ(result.final_test->accuracy, std::nullopt);
  EXPECT_EQ(trainer.evaluate(*halves()).loss, result.final_test->loss);
}

TEST(SeveralTensors, HaveTheSameBitsWhoeverComputesThem) {
  const MakeTrainer make = [](const auto& change) {
    TrainOptions options = short_training();
    change(options);
    return TorchTrainer(model_factory<Halves>(), loss_of_halves(), halves(), test::trace_of({24}),
                        options);
  };
  EXPECT_EQ(test::difference_in_bits(make, 5), std::nullopt);
}

std::string error_in_training(const ModelFactory& model, Loss loss,
                              std::shared_ptr<const Dataset> data) {
  return error_of([&] {
    weights_of_trained(
        {model, std::move(loss), std::move(data), test::trace_of({24}), short_training()});
  });
}

TEST(SeveralTensors, ThatAModelOrALossDoesNotTakeAreSaid) {
  EXPECT_THAT(
      error_in_training(model_factory<Whole>(), loss_of_halves(), halves()),
      HasSubstr("the data give 2 input tensors, which the model's forward() does not take"));
  EXPECT_THAT(
      error_in_training(model_factory<Halves>(), mse_loss(), halves()),
      HasSubstr("2 outputs, where one tensor is taken; accepted: one, or a model or a loss"));
  EXPECT_THAT(error_of([] {
                return make_dataset({features(), features().narrow(0, 0, 5)}, {});
              }),
              HasSubstr("96 samples in one tensor of inputs and 5 in another"));
  EXPECT_THAT(error_of([] { return make_dataset(Tensors(), Tensors()); }),
              HasSubstr("there are no inputs"));
}

TEST(SeveralTensors, AreKnownByAFingerprintOfAll) {
  const Tensors two{features(), wanted()};
  const auto one_and_one = make_dataset({features()}, {wanted()})->fingerprint();
  EXPECT_EQ(one_and_one, make_dataset(TensorDataset{features(), wanted()})->fingerprint());
  EXPECT_NE(one_and_one, make_dataset(two, {})->fingerprint());
  EXPECT_NE(make_dataset(two, {wanted()})->fingerprint(),
            make_dataset({features()}, {wanted(), wanted()})->fingerprint());
}

// Made when asked for, as data that do not fit into memory are.
class Generated : public Dataset {
 public:
  std::int64_t size() const override { return kSamples; }
  Batch batch(std::span<const std::int64_t> samples) const override {
    if (fails_at_ && std::find(samples.begin(), samples.end(), *fails_at_) != samples.end()) {
      throw std::runtime_error("the disk is gone");
    }
    const at::Tensor rows = at::empty({static_cast<std::int64_t>(samples.size())}, at::kLong);
    std::copy(samples.begin(), samples.end(), rows.data_ptr<std::int64_t>());
    Batch batch{.inputs = {features().index_select(0, rows)},
                .targets = {wanted().index_select(0, rows)}};
    if (short_by_one_) batch.targets[0] = batch.targets[0].narrow(0, 0, rows.size(0) - 1);
    return batch;
  }
  std::string fingerprint() const override { return "generated"; }

  std::optional<std::int64_t> fails_at_{};
  bool short_by_one_ = false;
};

// Gives what it has, and not a copy.
class Views : public Dataset {
 public:
  explicit Views(at::Tensor inputs) : inputs_(std::move(inputs)) {}
  std::int64_t size() const override { return kSamples; }
  Batch batch(std::span<const std::int64_t> samples) const override {
    const auto count = static_cast<std::int64_t>(samples.size());
    return {.inputs = {inputs_.narrow(0, samples.front(), count)},
            .targets = {wanted().narrow(0, samples.front(), count)}};
  }
  std::string fingerprint() const override { return "views"; }

 private:
  at::Tensor inputs_;
};

TEST(Datasets, ThatGiveViewsStayAsTheyAre) {
  for (const Precision precision : {Precision::full, Precision::fp16}) {
    const at::Tensor inputs = features().clone();
    TrainOptions options = short_training();
    options.sampler = in_order();
    TorchOptions torch;
    torch.precision = precision;
    TorchTrainer trainer(model_factory<Whole>(), mse_loss(), std::make_shared<Views>(inputs),
                         test::trace_of({24}), options, torch);
    trainer.fit();
    EXPECT_TRUE(at::equal(inputs, features())) << choice_name(kPrecisions, precision);
  }
}

TEST(Datasets, OfTheUsersOwnTrainAsTensorsDo) {
  expect_same(weights_of_trained({model_factory<Whole>(), mse_loss(), std::make_shared<Generated>(),
                                  test::trace_of({24}), short_training()}),
              trained_plainly());
  // Evaluations ask for ranges.
  TorchTrainer trainer(model_factory<Whole>(), mse_loss(), TensorDataset{features(), wanted()},
                       test::trace_of({24}), short_training());
  EXPECT_EQ(trainer.evaluate(Generated()).loss,
            trainer.evaluate(TensorDataset{features(), wanted()}).loss);
}

TEST(Datasets, ThatFailSayWhere) {
  const auto failing = std::make_shared<Generated>();
  failing->fails_at_ = 90;
  EXPECT_THAT(error_in_training(model_factory<Whole>(), mse_loss(), failing),
              MatchesRegex("data of minibatch [1-3] of 3 at epoch 1, step [1-4] of the run: "
                           "the disk is gone"));
  // Found before training.
  const auto at_once = std::make_shared<Generated>();
  at_once->fails_at_ = 0;
  EXPECT_THAT(
      error_in_training(model_factory<Whole>(), mse_loss(), at_once),
      HasSubstr("data of a minibatch of the training data, tried before training: the disk"));
  const auto too_short = std::make_shared<Generated>();
  too_short->short_by_one_ = true;
  EXPECT_THAT(error_in_training(model_factory<Whole>(), mse_loss(), too_short),
              HasSubstr("the data set gave 7 rows of targets for 8 samples"));
  EXPECT_THAT(error_in_training(model_factory<Whole>(), mse_loss(), nullptr),
              HasSubstr("training data: there is no data set"));
}

TEST(Datasets, AreWhatAStateIsBoundTo) {
  const auto make = [](std::shared_ptr<const Dataset> data) {
    return TorchTrainer(model_factory<Whole>(), mse_loss(), std::move(data), test::trace_of({24}),
                        short_training());
  };
  TorchTrainer trainer = make(std::make_shared<Generated>());
  trainer.fit();
  make(std::make_shared<Generated>()).load_state(trainer.state());
  TorchTrainer other = make(make_dataset(TensorDataset{features(), wanted()}));
  EXPECT_THROW(other.load_state(trainer.state()), Error);
}

}  // namespace

}  // namespace rubato
