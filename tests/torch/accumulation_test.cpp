// What becomes of buffers in a step of several minibatches, beside what PyTorch's accumulation of
// gradients makes of them: the same module, run over one minibatch after the other.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <torch/nn/functional/instancenorm.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/steps/random.hpp>

#include "support.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "train/hosted.hpp"

namespace rubato {
namespace {

namespace nn = torch::nn;

constexpr std::int64_t kRegressionMinibatch = 4;
constexpr std::int64_t kRegressionSamples = 32;
constexpr std::int64_t kRegressionWidth = 3;

TensorDataset regression() {
  at::manual_seed(3);
  return {.inputs = at::randn({kRegressionSamples, kRegressionWidth}, at::kDouble) * 2 + 1,
          .targets = at::randn({kRegressionSamples, kRegressionWidth}, at::kDouble)};
}

TrainOptions regression_options(std::int64_t cores = 3, int threads = 2) {
  return {.epochs = 1,
          .minibatch_size = kRegressionMinibatch,
          .learning_rate = 0.01,
          .reference_batch_size = 16,
          .seed = 5,
          .cores = cores,
          .threads = threads};
}

// A linear layer and whatever `normalise` makes of what comes out of it.
struct NormalisingNet : nn::Module {
  using Forward = std::function<at::Tensor(nn::BatchNorm1d&, const at::Tensor&)>;
  NormalisingNet(std::optional<double> momentum, Forward normalise)
      : norm(register_module(
            "norm", nn::BatchNorm1d(nn::BatchNorm1dOptions(kRegressionWidth)
                                        .momentum(momentum ? c10::optional<double>(*momentum)
                                                           : c10::nullopt)))),
        forward_(std::move(normalise)) {
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& x) { return forward_(norm, linear(x)); }

  nn::Linear linear = register_module("linear", nn::Linear(kRegressionWidth, kRegressionWidth));
  nn::BatchNorm1d norm;
  Forward forward_;
};

ModelFactory net(std::optional<double> momentum, const NormalisingNet::Forward& forward) {
  return [=] { return make_model(std::make_shared<NormalisingNet>(momentum, forward)); };
}

at::Tensor once(nn::BatchNorm1d& norm, const at::Tensor& x) {
  return norm(x);
}
at::Tensor twice(nn::BatchNorm1d& norm, const at::Tensor& x) {
  return norm(at::tanh(norm(x)) * 3);
}
// Some minibatches go by the norm.
at::Tensor seldom(nn::BatchNorm1d& norm, const at::Tensor& x) {
  return x.sum().item<double>() > 0 ? norm(x) : x;
}

using Tensors = std::vector<at::Tensor>;

// The buffers that a model has after minibatches that come one after the other, from the state
// given.
Tensors accumulated(const ModelFactory& factory, const Tensors& parameters, const Tensors& buffers,
                    const std::vector<at::Tensor>& minibatches) {
  const at::NoGradGuard no_grad;
  const Model model = factory();
  model.set_training(true);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    model.parameters[i].tensor.copy_(parameters[i]);
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) model.buffers[i].tensor.copy_(buffers[i]);
  for (const at::Tensor& inputs : minibatches) static_cast<void>(model.forward(inputs));
  return test::copies_of(model.buffers);
}

// The mean over all orders in which the minibatches may come.
Tensors accumulated_in_the_mean(const ModelFactory& factory, const Tensors& parameters,
                                const Tensors& buffers,
                                const std::vector<at::Tensor>& minibatches) {
  std::vector<std::size_t> order(minibatches.size());
  std::iota(order.begin(), order.end(), 0);
  Tensors sums;
  std::int64_t orders = 0;
  do {
    std::vector<at::Tensor> ordered;
    ordered.reserve(order.size());
    for (const std::size_t i : order) ordered.push_back(minibatches[i]);
    const Tensors after = accumulated(factory, parameters, buffers, ordered);
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (orders == 0) sums.push_back(at::zeros_like(after[i], at::kDouble));
      sums[i] += after[i];
    }
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  for (at::Tensor& sum : sums) sum /= orders;
  return sums;
}

// The inputs of some minibatches of the epoch.
std::vector<at::Tensor> inputs_of(const TensorDataset& data, std::uint64_t seed, std::int64_t first,
                                  std::int64_t count) {
  const EpochSamples samples(kRegressionSamples, kRegressionMinibatch, seed, EpochIndex{0});
  std::vector<at::Tensor> inputs;
  for (std::int64_t i = first; i < first + count; ++i) {
    inputs.push_back(test::rows_of(data.inputs, samples.minibatch(MinibatchIndex{i})));
  }
  return inputs;
}

// Trains steps of 1, 4, 2 and 1 minibatches, and compares after each.
void expect_accumulation(const ModelFactory& factory, const TrainOptions& options) {
  const TensorDataset data = regression();
  TorchTrainer trainer(factory, mse_loss(), data, test::trace_of({4, 16, 8, 4}), options);
  Tensors parameters = test::copies_of(trainer.parameters());
  Tensors buffers = test::copies_of(trainer.buffers());
  trainer.add_observer<test::Recorder>([&](Training& training, const StepRecord& step) {
    const auto minibatches =
        inputs_of(data, options.seed, step.plan.first_minibatch.value(), step.plan.minibatches);
    const Tensors expected = accumulated_in_the_mean(factory, parameters, buffers, minibatches);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto [name, actual] = tensor_of(training.buffers()[i]);
      EXPECT_TRUE(at::allclose(actual.to(at::kDouble), expected[i], 1e-12, 1e-14))
          << name << " after step " << step.plan.index << "\n"
          << actual << "\n"
          << expected[i];
    }
    parameters = test::copies_of(training.parameters());
    buffers = test::copies_of(training.buffers());
  });
  EXPECT_EQ(trainer.fit().steps, 4);
}

TEST(Accumulation, IsWhatRunningStatisticsFollowInTheMean) {
  for (const auto momentum : std::vector<std::optional<double>>{0.1, 0.0, 1.0, 0.35, {}}) {
    for (const NormalisingNet::Forward& forward :
         {NormalisingNet::Forward(once), NormalisingNet::Forward(twice),
          NormalisingNet::Forward(seldom)}) {
      SCOPED_TRACE(testing::Message() << "momentum " << momentum.value_or(-1));
      expect_accumulation(net(momentum, forward), regression_options());
    }
  }
}

// Module::to(torch::kDouble) makes a floating-point number of the norm's counter, and the integers
// that a module registers afterwards are none of its business.
TEST(Accumulation, IsWhatStatisticsFollowByACounterBesideIntegers) {
  struct Counted : nn::Module {
    nn::Linear linear = register_module("linear", nn::Linear(kRegressionWidth, kRegressionWidth));
    nn::BatchNorm1d norm = register_module(
        "norm", nn::BatchNorm1d(nn::BatchNorm1dOptions(kRegressionWidth).momentum(c10::nullopt)));
    at::Tensor seen;

    Counted() {
      to(at::kDouble);
      seen = register_buffer("seen", at::zeros({}, at::kLong));
    }
    at::Tensor forward(const at::Tensor& x) {
      {
        const at::NoGradGuard no_grad;
        seen += x.size(0);
      }
      return norm(linear(x));
    }
  };
  expect_accumulation(model_factory<Counted>(), regression_options());
}

// Where all minibatches have the same statistics there is but one order.
TEST(Accumulation, IsWhatRunningStatisticsAreOfEqualMinibatches) {
  struct Net2d : nn::Module {
    nn::BatchNorm2d norm =
        register_module("norm", nn::BatchNorm2d(nn::BatchNorm2dOptions(2).momentum(0.2)));
    nn::InstanceNorm2d instance = register_module(
        "instance",
        nn::InstanceNorm2d(
            nn::InstanceNorm2dOptions(2).momentum(0.3).affine(true).track_running_stats(true)));
    nn::BatchNorm2d cumulative = register_module(
        "cumulative", nn::BatchNorm2d(nn::BatchNorm2dOptions(2).momentum(c10::nullopt)));

    at::Tensor forward(const at::Tensor& x) {
      return cumulative(instance(norm(x))).mean({1, 2, 3}).unsqueeze(1);
    }
  };
  at::manual_seed(1);
  const at::Tensor image = at::randn({1, 2, 5, 5}) * 3 + 2;
  const TensorDataset data{.inputs = image.repeat({12, 1, 1, 1}), .targets = at::zeros({12, 1})};
  const ModelFactory factory = model_factory<Net2d>();
  TrainOptions options = regression_options();
  options.minibatch_size = 1;
  // Nothing moves but the statistics.
  options.learning_rate = 1e-30;
  TorchTrainer trainer(factory, mse_loss(), data, test::trace_of({7, 1, 4}), options);
  const Tensors expected =
      accumulated(factory, test::copies_of(trainer.parameters()),
                  test::copies_of(trainer.buffers()), std::vector<at::Tensor>(12, image));
  trainer.fit();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& [name, actual] = trainer.buffers()[i];
    EXPECT_TRUE(at::allclose(actual, expected[i], 1e-5, 1e-6)) << name << "\n"
                                                               << actual << "\n"
                                                               << expected[i];
  }
}

// Buffers that no forward writes to keep their bits, however many minibatches they have been
// averaged over.
TEST(Accumulation, LeavesConstantBuffersAsTheyAre) {
  struct Constants : nn::Module {
    nn::Linear linear = register_module("linear", nn::Linear(kRegressionWidth, kRegressionWidth));

    Constants() {
      using Limits = std::numeric_limits<float>;
      register_buffer("table", at::tensor({0.1F, 1.0F / 3, 3.1415927F, 1e-30F, -0.0F}));
      register_buffer(
          "mask", at::tensor({0.0F, Limits::lowest(), -Limits::infinity(), Limits::infinity()}));
    }
    at::Tensor forward(const at::Tensor& x) { return linear(x.to(at::kFloat)).to(at::kDouble); }
  };
  TorchTrainer trainer(model_factory<Constants>(), mse_loss(), regression(),
                       test::trace_of({4, 16, 8, 4}), regression_options());
  const Tensors before = test::copies_of(trainer.buffers());
  trainer.fit();
  ASSERT_EQ(before.size(), 2U);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto& [name, after] = trainer.buffers()[i];
    EXPECT_TRUE(test::bytes_of(after) == test::bytes_of(before[i])) << name << "\n" << after;
  }
}

// Counts in every type of integer, raises flags, and keeps what it saw last and in the mean.
struct Counting : nn::Module {
  nn::Linear linear = register_module("linear", nn::Linear(kRegressionWidth, kRegressionWidth));
  at::Tensor seen = register_buffer("seen", at::zeros({}, at::kLong));
  at::Tensor classes = register_buffer("classes", at::zeros({2, 2}, at::kInt));
  at::Tensor small = register_buffer("small", at::full({1}, 250, at::kByte));
  at::Tensor short_one = register_buffer("short", at::full({1}, -3, at::kShort));
  at::Tensor char_one = register_buffer("char", at::full({1}, 100, at::kChar));
  at::Tensor flag = register_buffer("flag", at::zeros({1}, at::kBool));
  at::Tensor untouched = register_buffer("untouched", at::ones({2}, at::kBool));
  at::Tensor initialised = register_buffer("initialised", at::zeros({1}, at::kLong));
  at::Tensor first_mean = register_buffer("first_mean", at::zeros({1}, at::kDouble));
  at::Tensor weight = register_buffer("weight", at::zeros({1}, at::kDouble));
  at::Tensor mean = register_buffer("mean", at::zeros({1}, at::kDouble));

  Counting() { linear->to(at::kDouble); }
  at::Tensor forward(const at::Tensor& x) {
    const at::NoGradGuard no_grad;
    seen += x.size(0);
    classes[1][0] += x.gt(0).sum().item<std::int64_t>();
    classes[0][1] += 1;
    small += 5;
    short_one -= 2;
    char_one += 20;
    flag.fill_(true);
    if (initialised.item<std::int64_t>() == 0) {
      initialised.fill_(1);
      first_mean.fill_(x.mean());
    }
    weight += 0.5;
    mean.fill_(x.mean());
    const at::AutoGradMode grad(true);
    return linear(x);
  }
};

Model counting() {
  Model model = make_model(std::make_shared<Counting>());
  model.buffer_rules = {{.buffer = "initialised", .combination = BufferCombination::first},
                        {.buffer = "first_mean", .combination = BufferCombination::first},
                        {.buffer = "weight", .combination = BufferCombination::sum}};
  return model;
}

TEST(Accumulation, IsWhatIntegersAreExactly) {
  const TensorDataset data = regression();
  const auto train = [&](std::int64_t cores, int threads, const FaultOptions& faults = {}) {
    TrainOptions options = regression_options(cores, threads);
    options.faults = faults;
    TorchTrainer trainer(counting, mse_loss(), data, test::trace_of({4, 16, 8, 4}), options);
    trainer.fit();
    return test::copies_of(trainer.buffers());
  };
  const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const NamedTensor& named : counting().buffers) list.push_back(named.name);
    return list;
  }();
  // In the order of the epoch.
  const auto minibatches =
      inputs_of(data, regression_options().seed, 0, kRegressionSamples / kRegressionMinibatch);
  const Tensors expected = accumulated(counting, {}, {}, minibatches);
  const Tensors alone = train(1, 1);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (names[i] == "mean") continue;
    EXPECT_TRUE(at::equal(alone[i], expected[i])) << names[i] << "\n"
                                                  << alone[i] << "\n"
                                                  << expected[i];
  }
  EXPECT_EQ(alone[0].item<std::int64_t>(), kRegressionSamples);
  const FaultOptions dying{.planned = {{CoreRank{1}, StepIndex{1}, 0}}};
  for (const Tensors& others : {train(1, 4), train(3, 2), train(64, 3), train(3, 2, dying)}) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(at::equal(others[i], alone[i])) << names[i];
    }
  }
}

TEST(BufferRules, AreChecked) {
  const auto error = [](const BufferRule& rule) {
    return error_of([&] {
      TorchTrainer(
          [&] {
            Model model = make_model(std::make_shared<Counting>());
            model.buffer_rules = {rule};
            return model;
          },
          mse_loss(), regression(), Trace::constant(8), regression_options());
    });
  };
  using enum BufferCombination;
  EXPECT_EQ(error({.buffer = "mean", .combination = average, .momentum = 0.1}), "no error");
  EXPECT_EQ(error({.buffer = "mean", .combination = average, .counter = "seen"}), "no error");
  EXPECT_EQ(error({.buffer = "nobody"}),
            "a buffer rule names 'nobody', which is not a buffer of the model");
  EXPECT_EQ(error({.buffer = "seen"}),
            "the rule of buffer 'seen': integers have no mean; accepted: sum, first");
  EXPECT_THAT(error({.buffer = "mean", .combination = average}), HasSubstr("needs a counter"));
  EXPECT_THAT(error({.buffer = "mean", .combination = average, .counter = "classes"}),
              HasSubstr("must be one int64 or floating"));
  EXPECT_THAT(error({.buffer = "mean", .combination = average, .momentum = std::nan("")}),
              HasSubstr("must be finite"));
}

// As torch.jit.script() makes it of torch.nn.BatchNorm1d, by hand.
torch::jit::Module script_net(std::optional<double> momentum) {
  torch::jit::Module norm("Norm");
  norm.register_attribute("training", c10::BoolType::get(), true);
  if (momentum) {
    norm.register_attribute("momentum", c10::FloatType::get(), *momentum);
  } else {
    norm.register_attribute("momentum", c10::NoneType::get(), c10::IValue());
  }
  norm.register_buffer("running_mean", at::zeros({kRegressionWidth}, at::kDouble));
  norm.register_buffer("running_var", at::ones({kRegressionWidth}, at::kDouble));
  norm.register_buffer("num_batches_tracked", at::zeros({}, at::kLong));
  norm.define(
      std::string("def forward(self, x):\n  self.num_batches_tracked.add_(1)\n") +
      "  return torch.batch_norm(x, None, None, self.running_mean, self.running_var, True, " +
      (momentum ? "self.momentum" : "1.0 / float(self.num_batches_tracked)") + ", 1e-5, False)\n");
  torch::jit::Module net("Net");
  net.register_attribute("training", c10::BoolType::get(), true);
  net.register_parameter("weight", at::eye(kRegressionWidth, at::kDouble).requires_grad_(), false);
  net.register_module("norm", norm);
  net.define("def forward(self, x):\n  return self.norm.forward(torch.matmul(x, self.weight))\n");
  return net;
}

TEST(Accumulation, IsWhatTorchScriptsStatisticsFollowToo) {
  for (const auto momentum : std::vector<std::optional<double>>{0.1, 1.0, {}}) {
    SCOPED_TRACE(testing::Message() << "momentum " << momentum.value_or(-1));
    const ModelFactory factory = script_factory(script_net(momentum));
    const Model model = factory();
    ASSERT_EQ(model.buffer_rules.size(), 3U);
    EXPECT_EQ(model.buffer_rules[1].buffer, "norm.running_var");
    EXPECT_EQ(model.buffer_rules[1].momentum, momentum);
    EXPECT_EQ(model.buffer_rules[1].counter, "norm.num_batches_tracked");
    expect_accumulation(factory, regression_options());
  }
}

// Some minibatches go by the gate, none by the layer that is not used.
struct GatedNet : nn::Module {
  nn::Linear gate = register_module("gate", nn::Linear(kRegressionWidth, kRegressionWidth));
  nn::Linear linear = register_module("linear", nn::Linear(kRegressionWidth, kRegressionWidth));
  nn::Linear unused = register_module("unused", nn::Linear(kRegressionWidth, kRegressionWidth));

  GatedNet() { to(at::kDouble); }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor out = linear(x);
    return is_open_for(x) ? out + gate(x) : out;
  }
  static bool is_open_for(const at::Tensor& x) { return x.sum().item<double>() > 10; }
};

// What PyTorch makes of the same steps, with gradients of None before each; and of each step
// whether the gate was open.
struct Accumulated {
  Tensors parameters;
  std::vector<bool> gate;
};
Accumulated accumulate(const TorchOptimizerMaker& make, const std::vector<std::int64_t>& batches,
                       const TrainOptions& options) {
  const TensorDataset data = regression();
  const EpochSamples samples(kRegressionSamples, kRegressionMinibatch, options.seed, EpochIndex{0});
  at::manual_seed(options.seed);
  const Model model = model_factory<GatedNet>()();
  Accumulated all;
  for (const NamedTensor& named : model.parameters) all.parameters.push_back(named.tensor);
  const auto optimizer = make({torch::optim::OptimizerParamGroup(all.parameters)});
  std::int64_t minibatch = 0;
  for (const std::int64_t batch : batches) {
    bool open = false;
    for (at::Tensor& parameter : all.parameters) parameter.mutable_grad() = at::Tensor();
    const std::int64_t end = minibatch + batch / kRegressionMinibatch;
    for (; minibatch < end; ++minibatch) {
      const auto rows = samples.minibatch(MinibatchIndex{minibatch});
      const at::Tensor inputs = test::rows_of(data.inputs, rows);
      open = open || GatedNet::is_open_for(inputs);
      const at::Tensor loss =
          at::mse_loss(model.forward(inputs), test::rows_of(data.targets, rows));
      (loss * (static_cast<double>(kRegressionMinibatch) / static_cast<double>(batch))).backward();
    }
    optimizer->step();
    all.gate.push_back(open);
  }
  return all;
}

TorchTrainer gated_trainer(const TrainOptions& options, const std::vector<std::int64_t>& batches) {
  return TorchTrainer(model_factory<GatedNet>(), mse_loss(), regression(), test::trace_of(batches),
                      options);
}

// A parameter keeps its value, and what the optimizer remembers of it, in a step of which no
// minibatch reaches it.
TEST(Unreached, ParametersStayAsTheyAreAsInPyTorch) {
  const std::vector<std::int64_t> batches{4, 4, 8, 4, 4, 4, 4};
  using Groups = std::vector<torch::optim::OptimizerParamGroup>;
  const std::vector<std::pair<OptimizerOptions, TorchOptimizerMaker>> optimizers{
      {{.momentum = 0.9, .weight_decay = 0.1},
       [](Groups of) {
         return std::make_unique<torch::optim::SGD>(
             std::move(of), torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(0.1));
       }},
      {{.method = AdamOptions{}, .weight_decay = 0.1},
       [](Groups of) {
         return std::make_unique<torch::optim::Adam>(
             std::move(of), torch::optim::AdamOptions(0.05).weight_decay(0.1));
       }},
      {{.method = AdamOptions{.decoupled = true}, .weight_decay = 0.1},
       [](Groups of) {
         return std::make_unique<torch::optim::AdamW>(
             std::move(of), torch::optim::AdamWOptions(0.05).weight_decay(0.1));
       }},
      {{.method = AdagradOptions{.lr_decay = 0.2, .epsilon = 1e-10}, .weight_decay = 0.1},
       [](Groups of) {
         return std::make_unique<torch::optim::Adagrad>(
             std::move(of), torch::optim::AdagradOptions(0.05).lr_decay(0.2).weight_decay(0.1));
       }}};
  for (const auto& [own, make] : optimizers) {
    SCOPED_TRACE(optimizer_name(own.method));
    TrainOptions options = regression_options();
    options.rule = "constant";
    options.learning_rate = 0.05;
    options.optimizer = own;
    const Accumulated expected = accumulate(make, batches, options);
    EXPECT_THAT(expected.gate, Contains(true));
    const std::vector<bool> closed_again{true, false};
    EXPECT_NE(std::search(expected.gate.begin(), expected.gate.end(), closed_again.begin(),
                          closed_again.end()),
              expected.gate.end())
        << "what an optimizer remembers of it matters in a step that does not reach it any more";
    const auto expect_same = [&](const TrainOptions& with) {
      TorchTrainer trainer = gated_trainer(with, batches);
      trainer.fit();
      for (std::size_t i = 0; i < expected.parameters.size(); ++i) {
        EXPECT_TRUE(
            at::allclose(trainer.parameters()[i].tensor, expected.parameters[i], 1e-9, 1e-12))
            << trainer.parameters()[i].name;
      }
    };
    expect_same(options);
    options.optimizer = {};
    options.own_optimizer = torch_optimizer(make);
    expect_same(options);
  }
}

// The bits go by the minibatches alone, also where the state goes through a file.
TEST(Unreached, ParametersAreTheSameInEveryWay) {
  TrainOptions options = regression_options();
  options.optimizer = {.method = AdamOptions{}, .weight_decay = 0.1};
  options.lookahead = LookaheadOptions{.k = 2};
  const std::vector<std::int64_t> batches{4, 4, 8, 4, 4, 4, 4};
  const auto make = [&](const std::function<void(TrainOptions&)>& change) -> Trainer {
    TrainOptions mine = options;
    change(mine);
    return gated_trainer(mine, batches);
  };
  for (const ExecutionOutcome& outcome : verify(make, options, std::ssize(batches))) {
    EXPECT_EQ(outcome.difference.value_or("none"), "none") << outcome.execution.what;
  }
  TorchTrainer alone = gated_trainer(options, batches);
  const auto before = test::copies_of(alone.parameters());
  alone.fit();
  for (const unsigned unused : {4U, 5U}) {
    EXPECT_TRUE(at::equal(alone.parameters()[unused].tensor, before[unused]));
  }
  const auto on_hosts = test::train_on({1, 2}, [&](std::shared_ptr<Hosts> hosts) {
    options.hosts = std::move(hosts);
    return std::make_unique<TorchTrainer>(gated_trainer(options, batches));
  });
  test::expect_bits(on_hosts, alone);
}

}  // namespace
}  // namespace rubato
