#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/steps/random.hpp>

#include "support.hpp"

namespace rubato {
namespace {

namespace nn = torch::nn;

// Two batch normalisations, the second of which sees what the first makes of a minibatch, and a
// table and a mask that no forward changes.
class TwoNorms : public nn::Module {
 public:
  TwoNorms() {
    register_module("linear1", linear1_);
    register_module("norm1", norm1_);
    register_module("linear2", linear2_);
    register_module("norm2", norm2_);
    table_ = register_buffer("table", at::tensor({0.1F, 1.0F / 3, 3.1415927F, 1e-30F, -0.0F}));
    using Limits = std::numeric_limits<float>;
    mask_ = register_buffer(
        "mask", at::tensor({0.0F, Limits::lowest(), -Limits::infinity(), Limits::infinity()}));
  }

  at::Tensor forward(const at::Tensor& x) {
    return norm2_(linear2_(at::tanh(norm1_(linear1_(x)))));
  }

 private:
  nn::Linear linear1_{3, 5};
  nn::BatchNorm1d norm1_{5};
  nn::Linear linear2_{5, 2};
  nn::BatchNorm1d norm2_{2};
  at::Tensor table_;
  at::Tensor mask_;
};

constexpr std::int64_t kShiftedSamples = 120;
constexpr std::int64_t kShiftedMinibatch = 4;
constexpr std::uint64_t kShiftedSeed = 5;

TensorDataset shifted_samples() {
  at::manual_seed(3);
  return {.inputs = at::randn({kShiftedSamples, 3}) * 2 + 1,
          .targets = at::randn({kShiftedSamples, 2})};
}

TorchTrainer trainer_of_norms(const TensorDataset& data, int threads) {
  return TorchTrainer(model_factory<TwoNorms>(), mse_loss(), data,
                      test::trace_of({4, 28, 12, 60, 4}, TraceEnd::stop),
                      {.epochs = 1,
                       .minibatch_size = kShiftedMinibatch,
                       .learning_rate = 0.1,
                       .reference_batch_size = 16,
                       .seed = kShiftedSeed,
                       .cores = 5,
                       .threads = threads});
}

// The state of a trainer, put into a plain module.
struct Plain {
  void load(const TorchTrainer& trainer) {
    parameters = test::copies_of(trainer.parameters());
    buffers = test::copies_of(trainer.buffers());
  }
  // The buffers after a minibatch, beginning with the loaded ones.
  std::vector<at::Tensor> buffers_after(const at::Tensor& inputs) const {
    const at::NoGradGuard no_grad;
    const auto module = std::make_shared<TwoNorms>();
    const auto own_parameters = module->parameters();
    auto own_buffers = module->buffers();
    for (std::size_t i = 0; i < own_parameters.size(); ++i) {
      at::Tensor(own_parameters[i]).copy_(parameters[i]);
    }
    for (std::size_t i = 0; i < own_buffers.size(); ++i) {
      at::Tensor(own_buffers[i]).copy_(buffers[i]);
    }
    static_cast<void>(module->forward(inputs));
    return own_buffers;
  }

  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;
};

bool is_statistic(const std::string& name) {
  return name.find("running_") != std::string::npos;
}

// Each step moves the running statistics by the mean change of its minibatches, which all begin
// with those of the step before, times (1 - 0.9^k) / 0.1.
TEST(Statistics, MoveByTheCompoundedMeanChangeOfTheMinibatches) {
  const TensorDataset data = shifted_samples();
  const EpochSamples samples(kShiftedSamples, kShiftedMinibatch, kShiftedSeed, EpochIndex{0});
  for (const int threads : {1, 2}) {
    TorchTrainer trainer = trainer_of_norms(data, threads);
    Plain plain;
    plain.load(trainer);
    const auto recorder =
        trainer.add_observer<test::Recorder>([&](Training&, const StepRecord& step) {
          std::vector<at::Tensor> sums;
          for (std::int64_t i = 0; i < step.plan.minibatches; ++i) {
            const auto indices =
                samples.minibatch(MinibatchIndex{step.plan.first_minibatch.value() + i});
            const at::Tensor rows =
                at::tensor(std::vector<std::int64_t>(indices.begin(), indices.end()));
            const auto after = plain.buffers_after(data.inputs.index_select(0, rows));
            for (std::size_t b = 0; b < after.size(); ++b) {
              if (i == 0) sums.push_back(at::zeros_like(after[b], at::kDouble));
              sums[b] += after[b].to(at::kDouble);
            }
          }
          const auto k = static_cast<double>(step.plan.minibatches);
          for (std::size_t b = 0; b < sums.size(); ++b) {
            const auto& [name, actual] = trainer.buffers()[b];
            if (!is_statistic(name)) continue;
            const at::Tensor before = plain.buffers[b].to(at::kDouble);
            const at::Tensor expected =
                before + (1 - std::pow(0.9, k)) / 0.1 * (sums[b] / k - before);
            EXPECT_TRUE(at::allclose(actual.to(at::kDouble), expected, 1e-6, 1e-6))
                << name << " after step " << step.plan.index << " on " << threads << " threads";
            EXPECT_FALSE(at::equal(actual, plain.buffers[b])) << name << " stands still";
          }
          plain.load(trainer);
        });
    trainer.fit();
    EXPECT_EQ(recorder->steps.size(), 5U);
  }
}

TEST(Statistics, CountersCountMinibatches) {
  for (const int threads : {1, 4}) {
    TorchTrainer trainer = trainer_of_norms(shifted_samples(), threads);
    std::int64_t minibatches = 0;
    const auto recorder =
        trainer.add_observer<test::Recorder>([&](Training&, const StepRecord& step) {
          minibatches += step.plan.minibatches;
          for (const auto& [name, buffer] : trainer.buffers()) {
            if (name.find("num_batches_tracked") == std::string::npos) continue;
            EXPECT_EQ(buffer.scalar_type(), at::kLong);
            EXPECT_EQ(buffer.item<std::int64_t>(), minibatches) << name;
          }
        });
    trainer.fit();
    EXPECT_EQ(recorder->steps.size(), 5U);
  }
}

// What no forward writes to stays the same bits, however many minibatches it has been averaged
// over.
TEST(Statistics, ConstantBuffersStayAsTheyAre) {
  TorchTrainer trainer = trainer_of_norms(shifted_samples(), 2);
  const auto before = test::copies_of(trainer.buffers());
  trainer.fit();
  int constants = 0;
  for (std::size_t b = 0; b < before.size(); ++b) {
    const auto& [name, after] = trainer.buffers()[b];
    if (name != "table" && name != "mask") continue;
    EXPECT_TRUE(test::bytes_of(after) == test::bytes_of(before[b])) << name << "\n"
                                                                    << after << "\n"
                                                                    << before[b];
    ++constants;
  }
  EXPECT_EQ(constants, 2);
}

}  // namespace
}  // namespace rubato
