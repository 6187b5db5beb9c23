// Who computes a model.

#include "config/engine.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/config/configuration_file.hpp>

#include "support/error_of.hpp"

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
    for (const auto& optimizer : kOptimizers) {
      const std::string of = "optimizer = \"" + std::string(optimizer.name) + "\"";
      EXPECT_EQ(engine_of(with(line + of)), Engine::eigen) << model << ", " << optimizer.name;
    }
  }
}

TEST(Engine, IsLibtorchForWhatEigenCannotDo) {
  for (const char* const line :
       {"precision = \"bf16\"", "operators = \"none\"", "init = \"msra\"", "augment = \"flip\"",
        "label-smoothing = 0.1", "engine = \"libtorch\""}) {
    EXPECT_EQ(engine_of(with(std::string("model = \"mlp\"\n") + line)), Engine::libtorch) << line;
  }
}

TEST(Engine, SaysWhatNobodyCanDo) {
  const auto error = [](const std::string& lines) {
    return test::error_of([&] { static_cast<void>(engine_of(with(lines))); });
  };
  EXPECT_EQ(error("model = \"mlp:hidden=3\"\nprecision = \"bf16\""),
            "--model mlp:hidden=3 is computed by Eigen, which cannot follow --precision bf16; "
            "accepted: one or the other");
  EXPECT_EQ(error("engine = \"eigen\""),
            "--engine eigen: only libtorch does --model mnist-cnn; accepted: --engine libtorch or "
            "auto");
  EXPECT_EQ(error("model = \"quadratic\"\nengine = \"libtorch\""),
            "--engine libtorch: only Eigen does --model quadratic; accepted: --engine eigen or "
            "auto");
}

TEST(ModelEntry, RefusesWhatIsNoModel) {
  const auto error = [](const std::string& model) {
    return test::error_of([&] { static_cast<void>(model_entry(model)); });
  };
  EXPECT_EQ(error("mpl"),
            "unknown model 'mpl'; did you mean 'mlp'? accepted: mnist-cnn, mlp, softmax, toy-net, "
            "quadratic");
  EXPECT_EQ(error("softmax:hidden=3"), "softmax takes no arguments, but has 'hidden'");
  EXPECT_THAT(error("mlp:hidden=3/0"), testing::StartsWith("mlp: hidden: '0' is out of range"));
  EXPECT_THAT(error("mlp:activation=sigmoid"), testing::HasSubstr("accepted: relu, tanh"));
  EXPECT_THAT(error("quadratic:dimension=3"),
              testing::HasSubstr("accepted: dim, condition, noise, samples"));
}

TEST(Configuration, RefusesAccuracyWhereThereIsNone) {
  RunConfiguration run{.model = "quadratic", .top_k = 2};
  EXPECT_EQ(test::error_of([&] { require_valid(run); }),
            "--top-k: quadratic has no accuracy; accepted: with a model that tells classes apart, "
            "such as softmax");
}

}  // namespace
}  // namespace rubato
