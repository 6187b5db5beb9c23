#include <cstdint>
#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <torch/optim/sgd.h>

#include <rubato/libtorch/adascale.hpp>
#include <rubato/steps/random.hpp>

#include "small_run.hpp"
#include "support.hpp"

namespace rubato {
namespace {

using test::dataset;
using test::Net;
using test::options_of;
using test::trainer_on;

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
  AdaScale adascale(sgd, {.num_gradients_to_accumulate = 2, .is_scaled_loss = false});
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
      const auto rows = samples.minibatch(MinibatchIndex{minibatch++});
      at::cross_entropy_loss(net.forward(test::rows_of(data.inputs, rows)),
                             test::rows_of(data.targets, rows))
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
      TorchTrainer trainer = trainer_on(test::trace_of(batches), options);
      const auto& steps = test::recorded(trainer)->steps;
      ASSERT_EQ(steps.size(), batches.size());
      for (std::size_t i = 0; i < batches.size(); ++i) {
        EXPECT_NEAR(steps[i].gain, loop.gains[i], 1e-9 * loop.gains[i]) << i;
        EXPECT_NEAR(steps[i].learning_rate, 0.1 * loop.gains[i], 1e-9) << i;
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
  TorchTrainer trainer = trainer_on(test::trace_of({16, 4, 28}), [] {
    TrainOptions options = options_of("adascale");
    options.epochs = 1;
    return options;
  }());
  const auto& steps = test::recorded(trainer)->steps;
  EXPECT_GT(steps[0].gain, 1);
  EXPECT_EQ(steps[1].gain, 1) << "scale 1";
  EXPECT_GT(steps[2].gain, 1);
}

TEST(Noise, IsMeasuredForEveryRuleWhenAsked) {
  const auto steps_of = [](const std::string& rule, bool log_noise) {
    TrainOptions options = options_of(rule);
    options.log_noise = log_noise;
    TorchTrainer trainer = trainer_on(test::trace_of({16, 4, 28}, TraceEnd::cycle), options);
    return test::recorded(trainer)->steps;
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

}  // namespace
}  // namespace rubato
