// Your own data and your own observer, without libtorch: a perceptron learns to distinguish two
// spirals on a changing number of cores, until the observer is satisfied. If a folder is given as
// an argument, the curves are written there for TensorBoard.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include <rubato/loop/eigen.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/runs/tensorboard.hpp>

namespace {

// Returns points of two nested spirals, as rows of x and y; `shift` from 0 to 1 moves them along.
rubato::DenseDataset<float> spirals(int points, double shift) {
  std::vector<float> rows;
  std::vector<std::int64_t> classes;
  for (int i = 0; i < points; ++i) {
    const double angle = 1 + 8 * (i + shift) / points;
    for (const int sign : {1, -1}) {
      rows.push_back(static_cast<float>(sign * angle * std::cos(angle) / 4));
      rows.push_back(static_cast<float>(sign * angle * std::sin(angle) / 4));
      classes.push_back(sign == 1 ? 0 : 1);
    }
  }
  return rubato::DenseDataset<float>::classified(std::move(rows), std::move(classes), 2);
}

// Ends training when the test accuracy is good enough.
class GoodEnough final : public rubato::Observer {
 public:
  explicit GoodEnough(double accuracy) : accuracy_(accuracy) {}

  void on_epoch(rubato::Training& training, const rubato::EpochRecord& epoch) override {
    const double accuracy = epoch.test->accuracy.value();
    if (epoch.epoch.value() % 10 == 9) {
      std::printf("epoch %3lld: %.1f %%\n", static_cast<long long>(epoch.epoch.value()) + 1,
                  100 * accuracy);
    }
    if (accuracy >= accuracy_) training.stop("good enough");
  }

 private:
  double accuracy_;
};

}  // namespace

int main(int argc, char** argv) {
  auto network = rubato::multi_layer_perceptron<float>(
      spirals(1024, 0),
      {.hidden = {64, 64}, .activation = rubato::Activation::tanh, .test = spirals(256, 0.5)});
  // Eight cores, then three, then sixteen, each with 16 samples at a time.
  const rubato::Trace trace({{128, 8}, {48, 3}, {256, 16}}, rubato::TraceEnd::cycle, "preemption");
  rubato::TrainOptions options{.epochs = 400, .minibatch_size = 16, .learning_rate = 0.05};
  options.rule = "root";
  options.optimizer.momentum = 0.9;
  rubato::Trainer trainer(std::move(network), trace, options);
  trainer.add_observer<GoodEnough>(0.99);
  if (argc > 1) trainer.add_observer<rubato::TensorBoard>(argv[1]);

  const rubato::TrainResult result = trainer.fit();
  std::printf("%s after %lld epochs\n", result.stopped.c_str(),
              static_cast<long long>(result.epochs));
}
