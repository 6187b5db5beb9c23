#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include <rubato/libtorch/trainer.hpp>

#include "small_run.hpp"
#include "support.hpp"
#include "support/error_of.hpp"

namespace rubato {
namespace {

using test::dataset;
using test::error_of;
using test::Net;
using test::options_of;
using test::trainer_on;
using testing::HasSubstr;

TEST(LabelSmoothing, IsTorchsCrossEntropyForBothLosses) {
  at::manual_seed(1);
  const at::Tensor logits = at::randn({7, 5}, at::kDouble);
  const at::Tensor targets = at::tensor(std::vector<std::int64_t>{0, 1, 2, 3, 4, 0, 1});
  for (const double smoothing : {0.0, 0.1, 0.5}) {
    const double expected =
        at::cross_entropy_loss(logits, targets, {}, at::Reduction::Mean, -100, smoothing)
            .item<double>();
    EXPECT_DOUBLE_EQ(cross_entropy_loss(smoothing)(logits, targets).item<double>(), expected);
    EXPECT_NEAR(nll_loss(smoothing)(at::log_softmax(logits, 1), targets).item<double>(), expected,
                1e-12);
  }
  EXPECT_THAT(error_of([] { static_cast<void>(nll_loss(1)); }), HasSubstr("label smoothing 1"));
  EXPECT_THAT(error_of([] { static_cast<void>(cross_entropy_loss(-0.1)); }),
              HasSubstr("label smoothing -0.1"));
}

TEST(LabelSmoothing, MayBeOfTheTrainingAlone) {
  TrainOptions options = options_of();
  TorchTrainer trainer(model_factory<Net>(), cross_entropy_loss(0.3), dataset(),
                       Trace::constant(16), options);
  const double smoothed = trainer.evaluate(dataset()).loss;
  trainer.set_test(dataset(), cross_entropy_loss());
  const double plain = trainer.evaluate(dataset()).loss;
  EXPECT_NE(plain, smoothed);
  EXPECT_DOUBLE_EQ(trainer_on(Trace::constant(16), options).evaluate(dataset()).loss, plain);
}

}  // namespace
}  // namespace rubato
