#include <cmath>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <torch/nn/module.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "support.hpp"

namespace rubato {
namespace {

using nlohmann::json;

// A number, a list of numbers or a list of lists, as float64.
at::Tensor tensor_of(const json& values) {
  if (!values.is_array()) return at::full({}, values.get<double>(), at::kDouble);
  std::vector<at::Tensor> elements;
  for (const json& value : values) elements.push_back(tensor_of(value));
  return at::stack(elements);
}

// logits = tanh(x W1^T + b1) W2^T + b2
class TanhMlp : public torch::nn::Module {
 public:
  explicit TanhMlp(const json& initial) {
    for (const char* name : {"w1", "b1", "w2", "b2"}) {
      parameters_.push_back(register_parameter(name, tensor_of(initial.at(parameters_.size()))));
    }
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor hidden = at::tanh(at::linear(x, parameters_[0], parameters_[1]));
    return at::linear(hidden, parameters_[2], parameters_[3]);
  }

 private:
  std::vector<at::Tensor> parameters_;
};

// The original's name of a rule, in rubato's words.
std::string rule_named(const std::string& name) {
  return name == "linear_momentum_sum" ? "linear-momentum" : name;
}

double norm_of(const std::vector<NamedTensor>& parameters) {
  double squares = 0;
  for (const auto& named : parameters) squares += named.tensor.square().sum().item<double>();
  return std::sqrt(squares);
}

TrainOptions options_of_run(const json& run) {
  return {.epochs = run.at("epochs"),
          .minibatch_size = run.at("minibatch_size"),
          .learning_rate = run.at("lr"),
          .reference_batch_size = run.at("ref_batchsize"),
          .rule = rule_named(run.at("rule")),
          .optimizer = {.method = SgdOptions{.nesterov = run.at("nesterov")},
                        .momentum = run.at("momentum"),
                        .weight_decay = run.at("weight_decay")},
          .seed = run.at("sampler_seed"),
          .cores = run.at("world")};
}

// What differs between a step and the reference's, whose numbers are to be met within `tolerance`.
void expect_step(const StepRecord& step, double norm, const json& expected) {
  const double lr = expected.at("lr");
  const double expected_norm = expected.at("params_norm");
  EXPECT_EQ(step.epoch.value(), expected.at("epoch").get<std::int64_t>());
  EXPECT_EQ(step.plan.batch_size, expected.at("batch_size").get<std::int64_t>());
  EXPECT_NEAR(step.learning_rate, lr, 1e-12 * lr);
  EXPECT_NEAR(norm, expected_norm, 1e-9 * expected_norm);
}

void expect_run(const json& run, const TrainOptions& options) {
  const Trace trace = test::trace_of(run.at("trace").get<std::vector<std::int64_t>>());
  const TensorDataset data{.inputs = tensor_of(run.at("X")),
                           .targets = tensor_of(run.at("Y")).to(at::kLong)};
  TorchTrainer trainer(model_factory<TanhMlp>(run.at("initial_params")), cross_entropy_loss(), data,
                       trace, options);
  const json& steps = run.at("steps");
  std::size_t taken = 0;
  trainer.add_observer<test::Recorder>([&](Training&, const StepRecord& step) {
    ASSERT_LT(taken, steps.size());
    SCOPED_TRACE(testing::Message() << "step " << taken);
    expect_step(step, norm_of(trainer.parameters()), steps.at(taken));
    ++taken;
  });
  trainer.fit();
  EXPECT_EQ(taken, steps.size());

  const json& final_parameters = run.at("final_params");
  ASSERT_EQ(trainer.parameters().size(), final_parameters.size());
  for (std::size_t i = 0; i < final_parameters.size(); ++i) {
    const auto& [name, actual] = trainer.parameters()[i];
    const at::Tensor expected = tensor_of(final_parameters.at(i));
    ASSERT_EQ(actual.scalar_type(), at::kDouble);
    ASSERT_EQ(actual.sizes(), expected.sizes());
    EXPECT_TRUE(at::allclose(actual, expected, /*rtol=*/1e-9, /*atol=*/0)) << name;
  }
}

// ../shared/reference/training.json: whole runs of the original module, computed in float64.
TEST(Reference, TrainingIsTheOriginals) {
  std::ifstream file(RUBATO_SHARED_DIR "/reference/training.json");
  if (!file) GTEST_SKIP() << "no " RUBATO_SHARED_DIR "/reference/training.json here";
  const json runs = json::parse(file);
  ASSERT_FALSE(runs.empty());
  for (const json& run : runs) {
    for (const auto& assignment : kAssignments) {
      for (const int threads : {1, 2, 4}) {
        SCOPED_TRACE(testing::Message()
                     << run.at("name") << ", " << assignment.name << ", " << threads << " threads");
        TrainOptions options = options_of_run(run);
        options.assignment = assignment.value;
        options.threads = threads;
        expect_run(run, options);
      }
    }
  }
}

}  // namespace
}  // namespace rubato
