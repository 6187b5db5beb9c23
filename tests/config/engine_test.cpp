// Who computes a model.

#include "runs/config/engine.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/runs/run_configuration.hpp>

#include "runs/config/values/model_choice.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

RunConfiguration with(const std::string& lines) {
  return parse_configuration(lines, "test");
}

TEST(Engine, IsEigenWhereEigenCan) {
  EXPECT_EQ(engine_of(with("")), Engine::libtorch) << "mnist-cnn";
  for (const char* const model : {"softmax", "mlp", "mlp:hidden=3", "quadratic:dim=4"}) {
    const std::string line = std::string("model = \"") + model + "\"\n";
    EXPECT_EQ(engine_of(with(line)), Engine::eigen) << model;
    for (const std::string_view optimizer : optimizer_names()) {
      const std::string of = "optimizer = \"" + std::string(optimizer) + "\"";
      EXPECT_EQ(engine_of(with(line + of)), Engine::eigen) << model << ", " << optimizer;
    }
  }
}

TEST(Engine, IsLibtorchForWhatEigenCannotDo) {
  for (const char* const line :
       {"precision = \"bf16\"", "operators = \"none\"", "init = \"msra\"", "augment = \"flip\"",
        "label-smoothing = 0.1", "engine = \"libtorch\"", "loss = \"mse\"", "weights = \"w.pt\"",
        "loss = \"nll:ignore=0\""}) {
    EXPECT_EQ(engine_of(with(std::string("model = \"mlp\"\n") + line)), Engine::libtorch) << line;
  }
}

TEST(Engine, SaysWhatNobodyCanDo) {
  const auto error = [](const std::string& lines) {
    return error_of([&] { return engine_of(with(lines)); });
  };
  EXPECT_EQ(error("model = \"quadratic:dim=3\"\nprecision = \"bf16\""),
            "--model quadratic:dim=3 is computed by Eigen, which cannot follow --precision bf16; "
            "accepted: one or the other");
  EXPECT_EQ(error("engine = \"eigen\""),
            "--engine eigen: only libtorch does --model mnist-cnn; accepted: --engine libtorch or "
            "auto");
  EXPECT_EQ(error("model = \"quadratic\"\nengine = \"libtorch\""),
            "--engine libtorch: only Eigen does --model quadratic; accepted: --engine eigen or "
            "auto");
}

TEST(Engine, KnowsTheGradientOfAScriptFromTheClusterAlone) {
  RunConfiguration run{.model = "script:net.pt"};
  EXPECT_EQ(engine_of(run), Engine::libtorch);
  EXPECT_EQ(error_of([&] { return known_gradient_bytes(run); }),
            "--model script:net.pt: the size of its gradient is not known without loading it; "
            "accepted: with its bytes, as in --cluster bytes=87600");
  run.cluster = "bytes=400";
  EXPECT_EQ(known_gradient_bytes(run), 400);
  EXPECT_EQ(known_gradient_bytes({.model = "softmax"}), 4 * 7850);
}

TEST(Configuration, RefusesFilesThatAreNotThere) {
  const auto error = [](const RunConfiguration& run) {
    return error_of([&] { require_consistent(run); });
  };
  EXPECT_EQ(error({.model = "script:no.pt"}),
            "--model: no such file as 'no.pt'; accepted: a file that torch.jit.save() wrote");
  EXPECT_EQ(error({.loss = "script:no.pt"}),
            "--loss: no such file as 'no.pt'; accepted: a file that torch.jit.save() wrote");
  EXPECT_EQ(error({.weights = "no.pt"}),
            "--weights: no such file as 'no.pt'; accepted: a state_dict that torch.save() wrote, "
            "or the folder of a run");
  EXPECT_EQ(error({.weights = "/"}),
            "--weights: the folder / has no weights.pt and no weights.safetensors; accepted: that "
            "of a run that has ended");
  EXPECT_EQ(error({.loss = "mse", .label_smoothing = 0.1}),
            "--label-smoothing: mse has no classes to spread a target over; accepted: with --loss "
            "cross-entropy or nll");
}

TEST(ModelEntry, RefusesWhatIsNoModel) {
  const auto error = [](const std::string& model) {
    return error_of([&] { Parsed<ModelChoice>{model}; });
  };
  EXPECT_EQ(error("mpl"),
            "unknown model 'mpl'; did you mean 'mlp'? accepted: mnist-cnn, mlp, softmax, toy-net, "
            "resnet20, transformer, quadratic, script:FILE");
  EXPECT_EQ(error("transformer:heads=3"),
            "transformer: heads: 3 heads cannot share 64 features; accepted: a divisor of dim");
  EXPECT_EQ(error("softmax:hidden=3"), "softmax takes no arguments, but has 'hidden'");
  EXPECT_THAT(error("mlp:hidden=3/0"), StartsWith("mlp: hidden: '0' is out of range"));
  EXPECT_THAT(error("mlp:activation=sigmoid"), HasSubstr("accepted: relu, tanh"));
  EXPECT_THAT(error("quadratic:dimension=3"),
              HasSubstr("accepted: dim, condition, noise, samples"));
}

TEST(Configuration, RefusesAccuracyWhereThereIsNone) {
  RunConfiguration run{.model = "quadratic", .top_k = 2};
  EXPECT_EQ(error_of([&] { require_valid(run); }),
            "--top-k: quadratic has no accuracy; accepted: with a model that tells classes apart, "
            "such as softmax");
}

}  // namespace
}  // namespace rubato
