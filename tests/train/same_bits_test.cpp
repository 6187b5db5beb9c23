#include <cstdint>
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <rubato/model/builtin_models.hpp>
#include <rubato/model/module.hpp>
#include <rubato/train/losses.hpp>
#include <rubato/train/trainer.hpp>

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
    Trainer trainer(builtin_model("mnist-cnn", {}), nll_loss(), train_,
                    test::trace_of({8, 104, 24, 192, 16}, TraceEnd::cycle), options);
    test::Recorder recorder;
    trainer.add_observer(recorder);
    trainer.set_test(test_);
    trainer.fit();
    Outcome outcome;
    outcome.state = test::state_bytes(trainer);
    for (const StepRecord& step : recorder.steps) outcome.losses.push_back(step.loss);
    outcome.train_loss = recorder.epochs.back().train_loss;
    outcome.test = recorder.epochs.back().test.value();
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

// Convolution, batch normalisation and dropout.
class DropoutNet : public torch::nn::Module {
 public:
  DropoutNet() {
    register_module("conv", conv_);
    register_module("norm", norm_);
    register_module("dropout", dropout_);
    register_module("linear", linear_);
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor features = at::relu(norm_(conv_(at::avg_pool2d(x, 4))));
    return at::log_softmax(linear_(dropout_(features.flatten(1))), 1);
  }

 private:
  torch::nn::Conv2d conv_{torch::nn::Conv2dOptions(1, 6, 3)};
  torch::nn::BatchNorm2d norm_{6};
  torch::nn::Dropout dropout_{0.5};
  torch::nn::Linear linear_{150, 10};
};

TEST(SameBitsOfDropout, ForAllThreadsCoresAssignmentsAndExactReducers) {
  const auto train = [](TrainOptions options) {
    options.epochs = 2;
    options.minibatch_size = 8;
    options.learning_rate = 0.05;
    options.reference_batch_size = 32;
    // Whatever else has drawn from libtorch's generator.
    at::manual_seed(static_cast<std::uint64_t>(options.cores));
    Trainer trainer(model_factory<DropoutNet>(), nll_loss(), test::digits(350),
                    test::trace_of({8, 104, 24, 192, 16}, TraceEnd::cycle), options);
    trainer.fit();
    return test::state_bytes(trainer);
  };
  const std::string expected = train({.cores = 1, .threads = 1});
  for (const int threads : {1, 2, 4}) {
    for (const std::int64_t cores : {1, 3, 8, 64}) {
      for (const std::string reduce : {"tree", "chunked-tree", "sharded"}) {
        EXPECT_TRUE(train({.cores = cores, .reduce = reduce, .threads = threads}) == expected)
            << threads << " threads, " << cores << " cores, " << reduce;
      }
    }
  }
  EXPECT_TRUE(train({.cores = 3, .assignment = Assignment::strided, .threads = 2}) == expected);
  EXPECT_FALSE(train({.seed = 43, .cores = 1, .threads = 1}) == expected);
}

}  // namespace
}  // namespace rubato
