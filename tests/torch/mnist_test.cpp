#include <filesystem>
#include <string>

#include <gmock/gmock.h>

#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/loop/images.hpp>

#include "support.hpp"

namespace rubato {
namespace {

constexpr const char* kData = RUBATO_SHARED_DIR "/data/mnist";
constexpr const char* kTrace = RUBATO_SHARED_DIR "/data/traces/test_trace.csv";

// The setting of the original's MNIST example.
TrainOptions original_options() {
  return {.epochs = 1,
          .minibatch_size = 32,
          .learning_rate = 0.01,
          .reference_batch_size = 128,
          .rule = "linear",
          .optimizer = {.momentum = 0.5},
          .cores = 8};
}

// Statistics of MNIST's training pixels as everyone rounds them.
constexpr PixelStatistics kMnist{.mean = 0.1307, .deviation = 0.3081};

class Mnist : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kData) || !std::filesystem::exists(kTrace)) {
      GTEST_SKIP() << "MNIST is not here: " << kData << " and " << kTrace << " are needed";
    }
    images_ = read_idx_folder(kData);
  }

  TrainTestImages images_;
};

// PyTorch reaches 96.4 % here.
TEST_F(Mnist, OneEpochReachesNinetyFivePercent) {
  TorchTrainer trainer(builtin_model("mnist-cnn", {}), nll_loss(),
                       to_tensors(images_.train, kMnist), Trace::read_csv(kTrace),
                       original_options());
  trainer.set_test(to_tensors(images_.test, kMnist));
  const TrainResult result = trainer.fit();
  ASSERT_TRUE(result.final_test.has_value());
  EXPECT_EQ(result.final_test->samples, 10'000);
  EXPECT_GE(result.final_test->accuracy.value(), 0.95);
  RecordProperty("accuracy", std::to_string(result.final_test->accuracy.value()));
}

TEST_F(Mnist, TrainsToTheSameBytesOnOneThreadAndOnTwo) {
  TensorDataset data = to_tensors(images_.train, kMnist);
  data = {.inputs = data.inputs.narrow(0, 0, 5'000), .targets = data.targets.narrow(0, 0, 5'000)};
  const auto train = [&](int threads) {
    TrainOptions options = original_options();
    options.threads = threads;
    TorchTrainer trainer(builtin_model("mnist-cnn", {}), nll_loss(), data, Trace::read_csv(kTrace),
                         options);
    EXPECT_GT(trainer.fit().steps, 10);
    return test::state_bytes(trainer);
  };
  EXPECT_TRUE(train(1) == train(2));
}

}  // namespace
}  // namespace rubato
