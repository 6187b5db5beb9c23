// Sequences of tokens, each of which has a target: losses, accuracy, the transformer, predictions.

#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "support/error_of.hpp"
#include "support/python_models.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

constexpr std::int64_t kVocabulary = 7;
constexpr std::int64_t kTokens = 12;
constexpr SequenceShape kShape{
    .tokens = kTokens, .vocabulary = kVocabulary, .classes = kVocabulary};

// Each token follows from the one before: what comes next can be learned.
TensorDataset counting(std::int64_t count) {
  const at::Tensor starts = at::arange(count).view({count, 1});
  const at::Tensor steps = at::arange(kTokens + 1) * 3;
  const at::Tensor text = at::remainder(starts + steps, kVocabulary);
  return {.inputs = text.slice(1, 0, kTokens).contiguous(),
          .targets = text.slice(1, 1).contiguous()};
}

TEST(SequenceLoss, IsTheMeanOverAllTokens) {
  at::manual_seed(1);
  const at::Tensor logits = at::randn({4, 5, 3}, at::kDouble);
  const at::Tensor targets = at::randint(3, {4, 5}, at::kLong);
  const at::Tensor log = logits.log_softmax(-1);
  double likelihood = 0;
  double all = 0;
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = 0; j < 5; ++j) {
      likelihood -= log[i][j][targets[i][j].item<std::int64_t>()].item<double>() / 20;
      all -= log[i][j].mean().item<double>() / 20;
    }
  }
  EXPECT_NEAR(cross_entropy_loss()(logits, targets).item<double>(), likelihood, 1e-12);
  EXPECT_NEAR(nll_loss()(log, targets).item<double>(), likelihood, 1e-12);
  EXPECT_NEAR(nll_loss(0.3)(log, targets).item<double>(), 0.7 * likelihood + 0.3 * all, 1e-12);
  EXPECT_NEAR(cross_entropy_loss(0.3)(logits, targets).item<double>(), 0.7 * likelihood + 0.3 * all,
              1e-12);
  // PyTorch's order.
  EXPECT_NEAR(cross_entropy_loss()(logits.movedim(-1, 1), targets).item<double>(), likelihood,
              1e-12);
  EXPECT_NEAR(nll_loss()(log.movedim(-1, 1), targets).item<double>(), likelihood, 1e-12);
}

TEST(SequenceTransformer, LearnsWhatComesNextToTheSameBits) {
  const TensorDataset data = counting(96);
  std::string expected;
  for (const int threads : {1, 2, 4}) {
    TorchTrainer trainer(sequence_model("transformer:dim=16,heads=2,hidden=32,dropout=0.1", kShape),
                         nll_loss(), data, Trace::constant(32),
                         {.epochs = 20,
                          .minibatch_size = 8,
                          .learning_rate = 0.01,
                          .optimizer = {.method = AdamOptions{}},
                          .cores = 2 * threads - 1,
                          .threads = threads});
    const Evaluation before = trainer.evaluate(data);
    static_cast<void>(trainer.fit());
    const Evaluation after = trainer.evaluate(data);
    EXPECT_LT(*before.accuracy, 0.5);
    EXPECT_EQ(after.accuracy, 1);
    EXPECT_LT(after.loss, before.loss / 4);
    const std::string hash = sha256_of(arrays_of(trainer.parameters()));
    if (expected.empty()) expected = hash;
    EXPECT_EQ(hash, expected) << threads << " threads";
  }
}

TEST(SequenceTransformer, SeesNoTokenBehind) {
  const at::NoGradGuard no_grad;
  const Model model = sequence_model("transformer:layers=3", kShape)();
  const at::Tensor tokens = counting(5).inputs;
  at::Tensor changed = tokens.clone();
  changed.select(1, 7).add_(1).remainder_(kVocabulary);
  const at::Tensor output = model.forward(tokens);
  const at::Tensor other = model.forward(changed);
  EXPECT_TRUE(at::equal(output.slice(1, 0, 7), other.slice(1, 0, 7)));
  for (std::int64_t i = 7; i < kTokens; ++i) {
    EXPECT_FALSE(at::equal(output.select(1, i), other.select(1, i))) << i;
  }
}

TEST(SequenceModel, IsTheTransformerAlone) {
  EXPECT_EQ(error_of([] { return sequence_model("mlp", kShape); }),
            "model mlp takes images, the data are sequences of tokens; accepted for these: "
            "transformer");
  EXPECT_EQ(error_of([] { return sequence_model("transfomer", kShape); }),
            "unknown model 'transfomer'; did you mean 'transformer'? accepted: mnist-cnn, mlp, "
            "softmax, toy-net, resnet20, transformer");
}

TEST(Accuracy, IsTheShareOfTokens) {
  const TensorDataset data = counting(300);
  // Right at the even places of every sequence.
  const ModelFactory half_right = [] {
    const at::Tensor one = at::ones({1}).requires_grad_();
    return Model{.forward =
                     [one](const at::Tensor& x) {
                       const at::Tensor next = at::remainder(x + 3, kVocabulary);
                       const at::Tensor odd = at::arange(kTokens).remainder(2);
                       // Ones alone would be probabilities.
                       return at::one_hot(at::remainder(next + odd, kVocabulary), kVocabulary) *
                              one * 2;
                     },
                 .set_training = [](bool) {},
                 .parameters = {{"one", one}},
                 .buffers = {}};
  };
  TorchTrainer trainer(half_right, cross_entropy_loss(), data, Trace::constant(32),
                       {.top_k = 1, .threads = 2});
  const Evaluation evaluation = trainer.evaluate(data);
  EXPECT_EQ(evaluation.samples, 300);
  EXPECT_EQ(evaluation.accuracy, 0.5);
  EXPECT_EQ(evaluation.top_k_accuracy, 0.5);
}

TEST(Predict, IsWhatForwardGivesInTheOrderOfTheSamples) {
  const TensorDataset data = counting(601);
  std::vector<at::Tensor> predictions;
  for (const int threads : {1, 3}) {
    TorchTrainer trainer(sequence_model("transformer:dropout=0.5", kShape), nll_loss(), data,
                         Trace::constant(32), {.threads = threads});
    const Tensors outputs = trainer.predict(data);
    ASSERT_EQ(outputs.size(), 1U);
    predictions.push_back(outputs.front());
    ASSERT_EQ(outputs.front().sizes(), (std::vector<std::int64_t>{601, kTokens, kVocabulary}));
    // 601 = 7 * 85 + 6: sequences 0 and 7 * 85 are the same.
    EXPECT_TRUE(at::allclose(outputs.front()[0], outputs.front()[595]));
    EXPECT_FALSE(at::allclose(outputs.front()[0], outputs.front()[1]));
    EXPECT_FALSE(outputs.front().requires_grad());
  }
  EXPECT_TRUE(at::equal(predictions[0], predictions[1]));
}

TEST(SequenceTransformer, HasATwinInPython) {
  if (!test::python_has_torch()) GTEST_SKIP() << "/usr/bin/python3 has no module torch here";
  const at::NoGradGuard no_grad;
  at::manual_seed(3);
  const Model model = sequence_model("transformer", kShape)();
  model.parameters.front().tensor.normal_();
  const test::TempFolder folder;
  const auto write_tensor = [&](const char* name, const at::Tensor& tensor) {
    const std::vector<char> bytes = torch::jit::pickle_save(tensor);
    folder.write(name, {bytes.data(), bytes.size()});
  };
  const at::Tensor tokens = counting(7).inputs;
  folder.write("weights.pt", pickled_weights(model.parameters, model.buffers));
  write_tensor("tokens.pt", tokens);
  write_tensor("output.pt", model.forward(tokens));
  test::run_python(folder,
                   test::python_models(RUBATO_PYTHON_MODELS) + fmt::format(R"(
model = Transformer({0}, None, {1}, vocabulary={1})
model.load_state_dict(torch.load('weights.pt'), strict=True)
largest = (model(torch.load('tokens.pt')) - torch.load('output.pt')).abs().max().item()
assert largest < 1e-5, largest
)",
                                                                           kTokens, kVocabulary));
}

}  // namespace
}  // namespace rubato
