// rubato train --model script:FILE, from Python to Python.

#include <csignal>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "app/command_test.hpp"
#include "support/idx_images.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

constexpr const char* kPython = "/usr/bin/python3";

class ScriptCommand : public test::CommandTest {
 protected:
  void SetUp() override {
    test::write_idx_images(folder_, "data", "train", 640, 28);
    test::write_idx_images(folder_, "data", "t10k", 100, 28);
  }
  [[nodiscard]] bool exported() const {
    return test::run_program(kPython, {RUBATO_EXPORT_MODELS, folder_.path().string()}).code == 0;
  }
  [[nodiscard]] test::ProgramResult train(const std::string& model, const std::string& run,
                                          const std::string& more = "",
                                          const test::WhileRunning& during = {}) const {
    return rubato(fmt::format("train --data=mnist:data --quiet --model=script:{}.pt --out={} "
                              "--trace=96 --epochs=2 {}",
                              model, run, more),
                  during);
  }
};

TEST_F(ScriptCommand, HasTheSameBitsOnAllThreadsAndCoresAndThroughAKill) {
  if (!exported()) GTEST_SKIP() << kPython << " has no module torch here";
  for (const std::string model : {"cnn", "lstm", "transformer"}) {
    SCOPED_TRACE(model);
    ASSERT_EQ(train(model, model, "--threads=1 --cores=1").code, 0);
    ASSERT_EQ(train(model, model + "2", "--threads=2 --cores=64").code, 0);
    EXPECT_EQ(hash(model + "2"), hash(model));
    ASSERT_EQ(train(model, model + "4", "--threads=4 --cores=8 --assignment=strided").code, 0);
    EXPECT_EQ(hash(model + "4"), hash(model));
    const auto killed =
        train(model, model + "-killed", "--checkpoint-every=1steps",
              [&](pid_t process, const std::filesystem::path&) {
                const auto checkpoint =
                    folder_.path() / (model + "-killed") / "checkpoints" / "step-4.safetensors";
                for (int i = 0; i < 6000 && !std::filesystem::exists(checkpoint); ++i) usleep(5000);
                kill(process, SIGKILL);
              });
    ASSERT_TRUE(killed.signal == SIGKILL || killed.code == 0);
    succeeds("train --quiet --resume " + model + "-killed");
    EXPECT_EQ(hash(model + "-killed"), hash(model));
  }
}

TEST_F(ScriptCommand, LeavesAModelThatPythonEvaluatesToTheSame) {
  if (!exported()) GTEST_SKIP() << kPython << " has no module torch here";
  for (const std::string model : {"cnn", "lstm", "transformer"}) {
    SCOPED_TRACE(model);
    ASSERT_EQ(train(model, model).code, 0);
    folder_.write("evaluate.py", fmt::format(R"(
import numpy, torch
def read(name, header):
    return numpy.fromfile("data/" + name, dtype=numpy.uint8)[header:]
train = read("train-images-idx3-ubyte", 16).astype(numpy.float64) / 255
test = torch.tensor((read("t10k-images-idx3-ubyte", 16) / 255 - train.mean()) / train.std())
labels = torch.tensor(read("t10k-labels-idx1-ubyte", 8), dtype=torch.long)
net = torch.jit.load("{0}/model.pt").eval()
with torch.no_grad():
    outputs = net(test.float().view(-1, 1, 28, 28))
weights = torch.load("{0}/weights.pt")
assert all(torch.equal(value, weights[name]) for name, value in net.state_dict().items())
print(torch.nn.functional.cross_entropy(outputs, labels).item())
print((outputs.argmax(1) == labels).double().mean().item())
)",
                                             model));
    const auto python = test::run_program(kPython, {"evaluate.py"}, folder_.path());
    ASSERT_EQ(python.code, 0) << python.err;
    const std::size_t line = python.out.find('\n');
    EXPECT_NEAR(std::stod(python.out), summary(model)["final_test_loss"].get<double>(), 1e-6);
    EXPECT_EQ(std::stod(python.out.substr(line)),
              summary(model)["final_test_accuracy"].get<double>());
  }
}

// One minibatch is the whole data set, and nothing is dropped: what is left to differ is rounding.
TEST_F(ScriptCommand, TrainsAsPyTorchDoes) {
  if (!exported()) GTEST_SKIP() << kPython << " has no module torch here";
  folder_.write("export.py",
                fmt::format(R"(
import sys, torch
from torch import nn
sys.argv = ["", "."]
sys.path.insert(0, "{}")
import export_models
x, y = torch.randn(32, 1, 28, 28), torch.arange(32) % 10
torch.save({{"x": x, "y": y, "x_test": x, "y_test": y}}, "batch.pt")
for name, net in (("cnn", export_models.Cnn()), ("lstm", export_models.Lstm()),
                  ("transformer", export_models.Transformer())):
    for part in net.modules():
        if isinstance(part, nn.Dropout): part.p = 0.0
        if isinstance(getattr(part, "dropout", None), float): part.dropout = 0.0
    torch.jit.script(net).save(name + "-plain.pt")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.5)
    for _ in range(20):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    torch.save(net.state_dict(), name + "-pytorch.pt")
)",
                            std::filesystem::path(RUBATO_EXPORT_MODELS).parent_path().string()));
  folder_.write("compare.py", R"(
import sys, torch
name = sys.argv[1]
ours, theirs = (torch.load(file) for file in (name + "/weights.pt", name + "-pytorch.pt"))
before = torch.jit.load(name + "/given-model.pt").state_dict()
assert ours.keys() == theirs.keys()
largest = lambda a, b: max((a[key].double() - b[key].double()).abs().max().item() for key in a)
print(largest(ours, theirs))
print(largest(ours, before))
)");
  const auto made = test::run_program(kPython, {"export.py"}, folder_.path());
  ASSERT_EQ(made.code, 0) << made.err;
  for (const std::string model : {"cnn", "lstm", "transformer"}) {
    SCOPED_TRACE(model);
    const auto result = train(model + "-plain", model,
                              "--data=tensors:batch.pt --trace=32 --ref-batch=32 --minibatch=32 "
                              "--epochs=20 --lr=0.05");
    ASSERT_EQ(result.code, 0) << result.err;
    const auto python = test::run_program(kPython, "compare.py " + model, folder_.path());
    ASSERT_EQ(python.code, 0) << python.err;
    EXPECT_LT(std::stod(python.out), 1e-4);
    EXPECT_GT(std::stod(python.out.substr(python.out.find('\n'))), 1e-2) << "it was trained";
  }
}

TEST_F(ScriptCommand, SaysWhatIsWrongWithAFile) {
  const auto missing = train("nothing", "run");
  EXPECT_EQ(missing.code, 2);
  EXPECT_EQ(missing.err,
            "rubato train: --model: no such file as 'nothing.pt'; accepted: a file that "
            "torch.jit.save() wrote\n");
  folder_.write("text.pt", "no model");
  const auto text = train("text", "run");
  EXPECT_EQ(text.code, 2);
  EXPECT_THAT(text.err,
              StartsWith("rubato train: --model: text.pt: cannot be read as TorchScript"));
  EXPECT_THAT(text.err, HasSubstr("it is not a zip archive; accepted: what torch.jit.script()"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "run"));
  EXPECT_THAT(refusal("train --model text.pt"),
              HasSubstr("'text.pt' is a file; did you mean 'script:text.pt'?"));
}

}  // namespace
}  // namespace rubato
