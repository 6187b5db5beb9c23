// Models of TorchScript, trained: the same bits whoever computes them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/testing.hpp>

#include "libtorch/model/script.hpp"
#include "loop/data/images/digits.hpp"
#include "script_models.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/sizes.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

TensorDataset digits_of(at::ScalarType type) {
  const ImageSet images = render_digits(96, 1);
  TensorDataset data = to_tensors(images, pixel_statistics(images));
  data.inputs = data.inputs.to(type);
  return data;
}

// Seven steps.
TorchTrainer trainer_of(const torch::jit::Module& module, const TensorDataset& data,
                        const TrainOptions& options) {
  return TorchTrainer(script_factory(module), cross_entropy_loss(), data,
                      test::trace_of({24, 12, 36, 24}), options);
}

const TrainOptions kOptions{
    .epochs = 2, .minibatch_size = 4, .learning_rate = 0.05, .cores = 8, .threads = 2};

TorchTrainer trained(const torch::jit::Module& module) {
  TorchTrainer trainer = trainer_of(module, digits_of(at::kFloat), kOptions);
  trainer.fit();
  return trainer;
}

void expect_same_bits(const torch::jit::Module& module, at::ScalarType type = at::kFloat) {
  const TensorDataset data = digits_of(type);
  const auto make = [&](const auto& change) -> Trainer {
    TrainOptions options = kOptions;
    change(options);
    return trainer_of(module, data, options);
  };
  for (const ExecutionOutcome& outcome : verify(make, kOptions, 7)) {
    EXPECT_EQ(outcome.difference, std::nullopt) << outcome.execution.what;
  }
}

at::Tensor tensor_called(const std::vector<NamedTensor>& tensors, const std::string& name) {
  for (const NamedTensor& named : tensors) {
    if (named.name == name) return named.tensor;
  }
  ADD_FAILURE() << "no tensor is called " << name;
  return {};
}

TEST(ScriptBits, OfDropoutTiedAndFrozenWeightsAndBuffersThatAreSet) {
  expect_same_bits(test::every_part());
}

TEST(ScriptBits, OfTheModelsThatPythonExports) {
  const auto& folder = test::exported_models();
  if (folder.empty()) GTEST_SKIP() << "/usr/bin/python3 has no module torch here";
  for (const std::string& name : test::cases<std::vector<std::string>>(
           {"traced", "lstm", "parts"},
           {"cnn", "traced", "lstm", "transformer", "forked", "parts"})) {
    SCOPED_TRACE(name);
    const std::string file = (folder / (name + ".pt")).string();
    expect_same_bits(read_script(test::read_file(file), file),
                     name == "parts" ? at::kDouble : at::kFloat);
  }
}

TEST(ScriptModel, TrainsTheTrainedPartAlone) {
  const torch::jit::Module module = test::every_part();
  const TorchTrainer trainer = trained(module);
  const auto& parameters = trainer.parameters();
  EXPECT_TRUE(at::equal(tensor_called(parameters, "weight"), tensor_called(parameters, "tied")));
  EXPECT_FALSE(at::equal(tensor_called(parameters, "weight"), module.attr("weight").toTensor()));
  EXPECT_TRUE(at::equal(tensor_called(parameters, "frozen"), module.attr("frozen").toTensor()));
  EXPECT_EQ(tensor_called(trainer.buffers(), "seen").item<std::int64_t>(), 2 * 96);
  EXPECT_GT(tensor_called(trainer.buffers(), "mean").abs().max().item<float>(), 0.01);
  ASSERT_EQ(trainer.objective().trained().size(), 1U);
}

TEST(ScriptBytes, AreTheModuleWithItsTrainedValues) {
  const torch::jit::Module module = test::every_part();
  const TorchTrainer trainer = trained(module);
  torch::jit::Module read =
      read_script(script_bytes(module, trainer.parameters(), trainer.buffers()), "test");
  const Model model = make_model(read);
  EXPECT_EQ(sha256_of(arrays_of(model.parameters)), sha256_of(arrays_of(trainer.parameters())));
  EXPECT_EQ(sha256_of(arrays_of(model.buffers)), sha256_of(arrays_of(trainer.buffers())));
  EXPECT_TRUE(read.attr("weight").toTensor().is_same(read.attr("tied").toTensor()));
  EXPECT_TRUE(read.attr("weight").toTensor().requires_grad());
  EXPECT_FALSE(read.attr("frozen").toTensor().requires_grad());
  // The one that was given is as it was.
  EXPECT_TRUE(at::equal(module.attr("mean").toTensor(), at::zeros({10})));
}

// libtorch's writer would end the process.
TEST(ScriptBytes, PassTheErrorsOfTheirSinkOn) {
  EXPECT_EQ(error_of([] {
              stream_script(test::every_part(), {}, {},
                            [](std::string_view) { throw Error("a full disk"); });
            }),
            "a full disk");
}

// No copies of a large model's parameters, which a trainer then has.
TEST(SharingScriptFactory, MakesInstancesOfTheModulesOwnParameters) {
  const torch::jit::Module module = test::every_part();
  const Model first = sharing_script_factory(module)();
  const Model second = sharing_script_factory(module)();
  const at::Tensor weight = module.attr("weight").toTensor();
  for (const Model* const model : {&first, &second}) {
    const at::Tensor& shared = model->parameters.front().tensor;
    EXPECT_EQ(shared.data_ptr(), weight.data_ptr());
    EXPECT_TRUE(shared.requires_grad());
    EXPECT_FALSE(shared.is_same(weight));
    EXPECT_TRUE(shared.is_same(model->parameters[1].tensor)) << "it is tied";
    EXPECT_FALSE(model->parameters[2].tensor.requires_grad()) << "it is frozen";
    EXPECT_NE(model->buffers.front().tensor.data_ptr(), module.attr("mean").toTensor().data_ptr());
  }
  // What a trainer gives one of them is its own.
  first.parameters.front().tensor.set_data(at::ones({10, 784}));
  EXPECT_EQ(second.parameters.front().tensor.data_ptr(), weight.data_ptr());
}

TEST(ForgetParameters, KeepsTheirShapesAlone) {
  const torch::jit::Module module = test::every_part();
  forget_parameters(module);
  const at::Tensor weight = module.attr("weight").toTensor();
  EXPECT_EQ(weight.sizes(), (std::vector<std::int64_t>{10, 784}));
  EXPECT_EQ(weight.storage().nbytes(), sizeof(float));
  EXPECT_TRUE(weight.requires_grad());
  EXPECT_TRUE(weight.is_same(module.attr("tied").toTensor()));
  EXPECT_EQ(sharing_script_factory(module)().parameters.front().tensor.sizes(), weight.sizes());
}

// A module whose forward() computes `value`, with a part of that kind.
torch::jit::Module module_of(const std::string& value, const char* kind) {
  torch::jit::Module part(kind);
  part.register_attribute("training", c10::BoolType::get(), true);
  part.register_buffer("running_mean", at::zeros({3}));
  torch::jit::Module net("Net");
  net.register_parameter("weight", at::ones({3}).requires_grad_(), false);
  net.register_buffer("mean", at::zeros({3}));
  net.register_buffer("variance", at::ones({3}));
  net.register_attribute("training", c10::BoolType::get(), true);
  net.register_module("part", part);
  net.define("def forward(self, x):\n  x = x * self.weight\n  return " + value + "\n");
  return net;
}

// Tracing writes the mode of its time into the file.
TEST(ScriptMode, IsNotedWhereItIsThatOfTheFile) {
  const Tensors inputs{at::arange(1, 13).to(at::kFloat).view({4, 3})};
  const auto notes_of = [&](const std::string& value, const char* kind) {
    const torch::jit::Module net = module_of(value, kind);
    auto notes = mode_notes(net, inputs);
    EXPECT_TRUE(net.is_training());
    EXPECT_TRUE(at::equal(net.attr("mean").toTensor(), at::zeros({3}))) << "buffers are copied";
    return notes;
  };
  const std::string norm = "torch.batch_norm(x, None, None, self.mean, self.variance, ";
  const char* const rest = ", 0.1, 1e-5, False)";
  EXPECT_THAT(notes_of("torch.dropout(x, 0.5, self.training)", "Dropout"), ElementsAre());
  EXPECT_THAT(notes_of(norm + "self.training" + rest, "BatchNorm2d"), ElementsAre());
  EXPECT_THAT(notes_of("x", "Linear"), ElementsAre());
  EXPECT_THAT(
      notes_of("torch.dropout(x, 0.5, True)", "Dropout"),
      ElementsAre("its outputs are random in tests, too, as with dropout that was traced in "
                  "training mode"));
  EXPECT_THAT(notes_of(norm + "True" + rest, "BatchNorm2d"),
              ElementsAre("tests change its buffers, as of a file traced in training mode"));
  EXPECT_THAT(
      notes_of("torch.dropout(x, 0.5, False)", "Dropout"),
      ElementsAre("training computes what tests do, without dropout, as of a file traced in "
                  "evaluation mode"));
  EXPECT_THAT(notes_of(norm + "False" + rest, "BatchNorm2d"),
              ElementsAre("training computes what tests do, without batch normalisation, as of a "
                          "file traced in evaluation mode"));
  EXPECT_THAT(mode_notes(module_of("x", "Dropout"), {at::ones({2, 5})}), ElementsAre())
      << "the trial says why it cannot compute";
}

// Networks are fine-tuned in this way, with norm.eval().
TEST(ScriptMode, OfAPartThatEvaluatesStays) {
  const Tensors inputs{at::ones({4, 3})};
  torch::jit::Module net = module_of("x", "BatchNorm2d");
  torch::jit::Module part = net.attr("part").toModule();
  const auto is_training = [&] { return std::pair(net.is_training(), part.is_training()); };
  part.train(false);
  EXPECT_THAT(mode_notes(net, inputs),
              ElementsAre("part stays in evaluation mode, as in the file"));
  const Model model = make_model(net);
  model.set_training(true);
  EXPECT_EQ(is_training(), std::pair(true, false));
  model.set_training(false);
  EXPECT_EQ(is_training(), std::pair(false, false));
  // A module that is in evaluation mode as a whole was exported so for use, and is trained.
  const Model whole = make_model(net);
  whole.set_training(true);
  EXPECT_EQ(is_training(), std::pair(true, true));
}

TEST(ScriptModel, RefusesWhatNoStateWouldHave) {
  torch::jit::Module counting("Counting");
  counting.register_parameter("weight", at::ones({1}).requires_grad_(), false);
  counting.register_attribute("calls", c10::IntType::get(), 0);
  counting.define(
      "def forward(self, x):\n  self.calls = self.calls + 1\n  return x * self.weight\n");
  EXPECT_EQ(
      error_of([&] { return make_model(counting); }),
      "forward() of the TorchScript module sets 'calls', of type int, which no state would have; "
      "accepted: tensors alone (register_buffer())");
  torch::jit::Module views("Views");
  const at::Tensor whole = at::ones({4}).requires_grad_();
  views.register_parameter("whole", whole, false);
  views.register_buffer("half", whole.detach().narrow(0, 0, 2));
  views.define("def forward(self, x):\n  return x * self.whole\n");
  EXPECT_EQ(error_of([&] { return script_factory(views); }),
            "'whole' and 'half' of the TorchScript module lie in one memory; accepted: tensors of "
            "their own (clone())");
  torch::jit::Module growing("Growing");
  growing.register_parameter("weight", at::ones({1}).requires_grad_(), false);
  growing.register_buffer("mean", at::zeros({1}));
  growing.define("def forward(self, x):\n  self.mean = x.mean(0)\n  return x * self.weight\n");
  const Model model = make_model(growing);
  EXPECT_EQ(error_of([&] {
              return model.forward(at::ones({2, 3}));
            }),
            "forward() of the TorchScript module has made 'mean' of shape [3], which was [1]; "
            "accepted: buffers that keep their shape");
  EXPECT_THAT(error_of([] { return read_script("no model", "net.pt"); }),
              StartsWith("net.pt: cannot be read as TorchScript: "));
}

}  // namespace
}  // namespace rubato
