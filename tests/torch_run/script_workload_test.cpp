// Runs of models that came as TorchScript.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>

#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/libtorch/workload.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "libtorch/torch_run/libtorch_workload.hpp"
#include "script_models.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

class ScriptWorkload : public testing::Test {
 protected:
  void SetUp() override {
    model_ = folder_.write("net.pt", test::file_of(test::every_part()));
    configuration_.model = "script:" + model_.string();
    configuration_.trace = "128";
    configuration_.on_trace_end = TraceEnd::hold;
    configuration_.samples = 512;
    configuration_.threads = 2;
  }
  [[nodiscard]] fs::path run_folder() const { return folder_.path() / "run"; }

  std::string trained(const RunConfiguration& configuration, RunLocation location) {
    rubato::Run run(configuration, torch_workload(configuration), std::move(location));
    const RunOutcome outcome = run.execute();
    return outcome.summary->weights_sha256;
  }
  std::string resumed(const RunConfiguration& configuration) {
    return trained(configuration, RunLocation::resume(run_folder(), configuration));
  }

  test::TempFolder folder_;
  fs::path model_;
  RunConfiguration configuration_;
};

// Before data are made for it.
TEST_F(ScriptWorkload, RefusesAModelThatIsNotTrained) {
  const auto error_of = [&](const std::function<void(torch::jit::Module&)>& change) {
    torch::jit::Module net = test::every_part();
    change(net);
    folder_.write("net.pt", test::file_of(net));
    return test::error_of([&] { return torch_workload(configuration_); });
  };
  EXPECT_EQ(error_of([](torch::jit::Module& /*net*/) {}), "no error");
  EXPECT_EQ(error_of([](torch::jit::Module& net) { net.to(at::kHalf); }),
            "--model: " + model_.string() +
                ": parameter 'weight' is Half, which is not trained; accepted: Float, Double "
                "(module.float(); --precision says what it is computed in)");
  EXPECT_THAT(error_of([](torch::jit::Module& net) {
                net.register_buffer("half", at::ones({2}, at::kHalf));
              }),
              HasSubstr("buffer 'half' is Half, but the first parameter is Float"));
  // Debian 12's libtorch puts what it reads on the CPU; Debian 13's leaves it where it was.
  EXPECT_THAT(error_of([](torch::jit::Module& net) {
                net.register_buffer("nowhere", at::ones({2}, at::TensorOptions(at::kMeta)));
              }),
              AnyOf(HasSubstr("net.pt: cannot be read as TorchScript: 'nowhere' has no values"),
                    HasSubstr("net.pt: buffer 'nowhere' is on meta; accepted: cpu")));
}

TEST_F(ScriptWorkload, LeavesTheTrainedModelAndWhatItBeganWith) {
  const std::string hash = trained(configuration_, RunLocation::create(run_folder()));
  EXPECT_EQ(test::read_file(run_folder() / "given-model.pt"), test::read_file(model_));
  const auto module = read_script(test::read_file(run_folder() / "model.pt"), "model.pt");
  EXPECT_GT(module.attr("seen").toTensor().item<std::int64_t>(), 0);
  EXPECT_TRUE(fs::exists(run_folder() / "weights.pt"));
  // Its folder alone reproduces it.
  fs::remove(model_);
  fs::rename(run_folder(), folder_.path() / "moved");
  const RunConfiguration again = read_configuration(folder_.path() / "moved" / "config.toml");
  EXPECT_EQ(again.model, "script:" + (folder_.path() / "moved" / "given-model.pt").string());
  EXPECT_EQ(trained(again, RunLocation::create(folder_.path() / "again")), hash);
}

TEST_F(ScriptWorkload, IsResumedWithTheSameModelWhereverItLies) {
  RunConfiguration longer = configuration_;
  longer.samples.reset();
  longer.epochs = 2;
  configuration_.samples.reset();
  configuration_.epochs = 1;
  const std::string whole = trained(longer, RunLocation::create(folder_.path() / "whole"));
  static_cast<void>(trained(configuration_, RunLocation::create(run_folder())));
  const fs::path copy = folder_.write("copy.pt", test::read_file(model_));
  longer.model = "script:" + copy.string();
  EXPECT_EQ(resumed(longer), whole);

  torch::jit::Module other = test::every_part();
  other.attr("frozen").toTensor().add_(1);
  longer.model = "script:" + folder_.write("other.pt", test::file_of(other)).string();
  longer.epochs = 3;
  EXPECT_THAT(
      test::error_of([&] { return resumed(longer); }),
      StartsWith("--model: the file is not the one that the run was trained with (SHA-256 "));
  longer.model = "mnist-cnn";
  EXPECT_THAT(test::error_of([&] { return resumed(longer); }),
              HasSubstr("trained with other options: --model was script:"));
}

// Their values are forgotten once a trainer has them.
TEST_F(ScriptWorkload, MakesAnyNumberOfTrainersThatBeginAlike) {
  configuration_.weights =
      folder_
          .write("w.pt",
                 pickled_weights({{{"weight", at::full({10, 784}, 0.01)},
                                   {"tied", at::full({10, 784}, 0.01)},
                                   {"frozen", at::ones({10})}}},
                                 {{{"mean", at::zeros({10})}, {"seen", at::zeros({}, at::kLong)}}}))
          .string();
  for (const char* const initializer : {"default", "normal"}) {
    configuration_.initializer = initializer;
    const auto workload = torch_workload(configuration_);
    std::vector<std::string> begins;
    for (int i = 0; i < 2; ++i) {
      const Trainer trainer = make_trainer(*workload, configuration_,
                                           std::make_unique<TraceSource>(Trace::constant(128)),
                                           train_options(configuration_));
      begins.push_back(sha256_of(trainer.parameters()));
    }
    EXPECT_EQ(begins[0], begins[1]) << initializer;
  }
}

TEST_F(ScriptWorkload, HasTheGradientOfItsTrainedPart) {
  EXPECT_EQ(torch_workload(configuration_)->gradient_bytes(), 4 * 7840);
}

TEST_F(ScriptWorkload, BeginsWithTheWeightsOfAnotherRun) {
  RunConfiguration softmax{.model = "softmax",
                           .engine = Engine::libtorch,
                           .trace = "128",
                           .on_trace_end = TraceEnd::hold,
                           .epochs = 1,
                           .samples = 256,
                           .threads = 1};
  const std::string hash = trained(softmax, RunLocation::create(folder_.path() / "first"));
  softmax.weights = (folder_.path() / "first").string();
  // A step of no length.
  softmax.learning_rate = 1e-30;
  EXPECT_EQ(trained(softmax, RunLocation::create(folder_.path() / "second")), hash);
  EXPECT_EQ(test::read_file(folder_.path() / "second" / "given-weights.pt"),
            test::read_file(folder_.path() / "first" / "weights.pt"));
  softmax.model = "mlp";
  EXPECT_THAT(test::error_of([&] { return torch_workload(softmax); }),
              HasSubstr("it lacks linear1.weight, "));
}

at::Tensor loss_of(const std::string& name, const at::Tensor& output, const at::Tensor& target) {
  return run_loss(name, 0, "")(output, target);
}

TEST(RunLoss, OfEveryName) {
  const at::Tensor output = at::arange(6).sin().view({2, 3});
  const at::Tensor classes = at::tensor({2, 0}, at::kLong);
  const at::Tensor rows = at::tensor({0.F, 0.F, 1.F, 1.F, 0.F, 0.F}).view({2, 3});
  const at::Tensor log = output.log_softmax(1);
  const double likelihood = -(log[0][2] + log[1][0]).item<double>() / 2;
  EXPECT_NEAR(loss_of("nll", log, classes).item<double>(), likelihood, 1e-6);
  EXPECT_NEAR(loss_of("cross-entropy", output, classes).item<double>(), likelihood, 1e-6);
  const double squares = (output - rows).square().mean().item<double>();
  EXPECT_NEAR(loss_of("mse", output, classes).item<double>(), squares, 1e-6);
  EXPECT_NEAR(loss_of("mse", output, rows).item<double>(), squares, 1e-6);
  const at::Tensor p = output.sigmoid();
  const double binary = -(rows * p.log() + (1 - rows) * (1 - p).log()).mean().item<double>();
  EXPECT_NEAR(loss_of("bce", output, classes).item<double>(), binary, 1e-6);
  // One output for each sample.
  EXPECT_NEAR(
      loss_of("bce", output.flatten().narrow(0, 0, 2).unsqueeze(1), at::tensor({1, 0}))
          .item<double>(),
      -(output[0][0].sigmoid().log() + (1 - output[0][1].sigmoid()).log()).item<double>() / 2,
      1e-6);
}

TEST(RunLoss, SaysWhereOneOutputChangesItsClass) {
  EXPECT_EQ(run_loss("bce", 0, "").threshold(), 0);
  EXPECT_EQ(run_loss("mse", 0, "").threshold(), 0.5);
  const auto of_script = [](const std::string& body) {
    torch::jit::Module module("Loss");
    module.define("def forward(self, a, b):\n  return torch." + body + "\n");
    return run_loss("script:l.pt", 0, test::file_of(module)).threshold();
  };
  EXPECT_EQ(of_script("binary_cross_entropy_with_logits(a, b)"), 0);
  EXPECT_EQ(of_script("mse_loss(a, b)"), 0.5);
}

TEST(RunLoss, RefusesWhatItWouldTakeForSomethingElse) {
  const at::Tensor three = at::arange(6).sin().view({2, 3});
  const at::Tensor one = three.narrow(1, 0, 1);
  const auto error_of = [](const char* loss, const at::Tensor& output, const at::Tensor& target) {
    return test::error_of([&] { return loss_of(loss, output, target); });
  };
  for (const char* const loss : {"mse", "bce"}) {
    EXPECT_EQ(error_of(loss, one, at::ones({2})), "no error");
    EXPECT_EQ(
        error_of(loss, three, at::ones({2, 1})),
        std::string(loss) +
            " compares outputs and targets one by one, and outputs are [2, 3] and targets "
            "[2, 1]; accepted: targets of the outputs' shape, or integers, which are classes");
  }
  EXPECT_EQ(error_of("bce", one, at::tensor({0, 2})),
            "bce takes targets from 0 to 1, and they are from 0 to 2; accepted: these, or classes "
            "with an output for each");
  EXPECT_EQ(error_of("bce", three, at::tensor({0, 3})),
            "3 outputs are too few for class 3; accepted: an output for each class");
  const Loss bce = run_loss("bce", 0, "");
  const at::Tensor target = at::tensor({0, 1});
  EXPECT_EQ(test::error_of([&] { bce.check()({three}, {target}); }), "no error");
  EXPECT_THAT(test::error_of([&] { bce.check()({three.log_softmax(1)}, {target}); }),
              StartsWith("bce takes logits, and the outputs are log-probabilities"));
}

TEST(RunLoss, OfClassesLooksAtWhatTheOutputsAre) {
  at::manual_seed(1);
  const at::Tensor logits = at::randn({8, 3});
  const at::Tensor target = at::tensor({0, 1, 2, 0, 1, 2, 0, 1});
  const auto error_of = [&](const char* loss, const at::Tensor& output, const at::Tensor& classes) {
    return test::error_of([&] { run_loss(loss, 0, "").check()({output}, {classes}); });
  };
  for (const std::string arguments : {"", ":ignore=-1", ":class-weights=1/2/1"}) {
    const std::string nll = "nll" + arguments;
    EXPECT_EQ(error_of(nll.c_str(), logits.log_softmax(1), target), "no error");
    EXPECT_EQ(error_of(nll.c_str(), logits.log_softmax(1).to(at::kBFloat16), target), "no error");
    EXPECT_THAT(error_of(nll.c_str(), logits, target),
                MatchesRegex(
                    "nll takes log-probabilities, as of log_softmax\\(\\), and the exponentials of "
                    "the outputs sum to .*; accepted: log-probabilities, or --loss cross-entropy"));
    EXPECT_THAT(error_of(nll.c_str(), logits.softmax(1), target),
                StartsWith("nll takes log-probabilities, and the outputs are "
                           "probabilities, as of softmax(); accepted: log_softmax()"));
    const std::string cross_entropy = "cross-entropy" + arguments;
    EXPECT_EQ(error_of(cross_entropy.c_str(), logits, target), "no error");
    EXPECT_EQ(error_of(cross_entropy.c_str(), logits.log_softmax(1), target), "no error");
    EXPECT_THAT(error_of(cross_entropy.c_str(), logits.softmax(1), target),
                StartsWith("cross-entropy takes logits or log-probabilities, and the "
                           "outputs are probabilities, as of softmax(); accepted: "));
  }
  // The classes of tokens, in both orders.
  const at::Tensor tokens = at::zeros({2, 4}, at::kLong);
  const at::Tensor scores = logits.view({2, 4, 3});
  EXPECT_EQ(error_of("nll", scores.log_softmax(2), tokens), "no error");
  EXPECT_EQ(error_of("nll", scores.log_softmax(2).transpose(1, 2), tokens), "no error");
  EXPECT_NE(error_of("nll", scores.transpose(1, 2), tokens), "no error");
}

// Logits may lie between 0 and 1, so values do not tell.
TEST(RunLoss, OfLogitsRefusesWhatASigmoidHasComputed) {
  const Loss bce = run_loss("bce", 0, "");
  const at::Tensor logits = at::rand({8, 1}).requires_grad_();
  const at::Tensor target = at::tensor({0, 1, 1, 0, 1, 1, 0, 1});
  const auto error_of = [&](const at::Tensor& output) {
    return test::error_of([&] { bce.check()({output}, {target}); });
  };
  EXPECT_EQ(error_of(logits * 1), "no error");
  EXPECT_EQ(error_of(logits.sigmoid() * 2), "no error");
  for (const at::Tensor& output :
       {logits.sigmoid(), logits.sigmoid().squeeze(1), logits.view({-1}).sigmoid().view({8, 1})}) {
    EXPECT_EQ(error_of(output),
              "bce takes logits, and the outputs are probabilities, as of sigmoid(); accepted: the "
              "outputs before sigmoid()");
  }
}

TEST(RunLoss, RefusesWeightsThatAreAllZero) {
  EXPECT_EQ(test::error_of([] { return run_loss("cross-entropy:class-weights=0/0/0", 0, ""); }),
            "class weights 0/0/0: accepted are finite ones of at least 0, not all of them 0");
}

TEST(RunLoss, OfTorchScript) {
  torch::jit::Module absolute("Absolute");
  absolute.register_parameter("factor", at::full({}, 3.0), false);
  absolute.define(
      "def forward(self, output, target):\n"
      "  return self.factor * (output - target).abs().mean()\n");
  const Loss loss = run_loss("script:loss.pt", 0, test::file_of(absolute));
  const at::Tensor output = at::ones({2}).requires_grad_();
  const at::Tensor value = loss(output, at::zeros({2}));
  EXPECT_EQ(value.item<double>(), 3);
  value.backward();
  EXPECT_EQ(output.grad()[0].item<double>(), 1.5);
  torch::jit::Module learning("Learning");
  learning.register_parameter("factor", at::full({}, 3.0).requires_grad_(), false);
  learning.define("def forward(self, a, b):\n  return self.factor * (a - b).abs().mean()\n");
  const auto error_of = [](const torch::jit::Module& module) {
    return test::error_of([&] { return run_loss("script:l.pt", 0, test::file_of(module)); });
  };
  EXPECT_THAT(error_of(learning),
              StartsWith("parameter 'factor' of the TorchScript loss would not be trained"));
  torch::jit::Module keeping("Keeping");
  keeping.register_buffer("last", at::zeros({}));
  keeping.define("def forward(self, a, b):\n  self.last = (a - b).mean()\n  return self.last\n");
  EXPECT_EQ(
      error_of(keeping),
      "forward() of the TorchScript loss sets attributes; accepted: a loss that keeps nothing "
      "from one call to the next");
}

}  // namespace
}  // namespace rubato
