#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <rubato/testing.hpp>

#include "base/core/mix.hpp"

namespace rubato::test {

namespace {

constexpr std::size_t kWeights = 3;
constexpr std::size_t kParameters = kWeights + 1;

// Hashes the key to a number from -1 to 1.
double number_of(std::uint64_t key) {
  return 2 * std::ldexp(static_cast<double>(mixed(key) >> 11U), -53) - 1;
}

struct Row {
  std::array<double, kWeights> x{};
  double y = 0;
};

std::vector<Row> rows_of(std::int64_t count, std::uint64_t seed) {
  std::vector<Row> rows(static_cast<std::size_t>(count));
  std::uint64_t key = mixed(seed);
  for (Row& row : rows) {
    for (double& x : row.x) x = number_of(++key);
    row.y = row.x[0] - 2 * row.x[1] + 0.5 + 0.1 * number_of(++key);
  }
  return rows;
}

class TinyObjective final : public ObjectiveOf<double> {
 public:
  TinyObjective(std::int64_t samples, std::uint64_t seed)
      : fingerprint_(fmt::format("{} rows of {}", samples, seed)),
        train_(rows_of(samples, seed)),
        test_(rows_of(samples, seed + 1)),
        trained_{{.array = {.name = "weight",
                            .type = ElementType::f64,
                            .shape = {kWeights},
                            .data = parameters_.data()},
                  .end = kWeights},
                 {.array = {.name = "bias",
                            .type = ElementType::f64,
                            .shape = {1},
                            .data = parameters_.data() + kWeights},
                  .end = kParameters}},
        arrays_{trained_[0].array, trained_[1].array},
        buffers_{{.name = "mean", .type = ElementType::f64, .shape = {}, .data = &mean_}} {}

  std::int64_t samples() const override { return static_cast<std::int64_t>(train_.size()); }
  const std::vector<TrainedArray>& trained() const override { return trained_; }
  const std::vector<NamedArray>& parameters() const override { return arrays_; }
  const std::vector<NamedArray>& buffers() const override { return buffers_; }
  std::string fingerprint() const override { return fingerprint_; }
  std::string test_fingerprint() const override { return fingerprint_; }
  bool has_test() const override { return true; }
  Evaluation test(Workers& workers, const EvaluationOptions& options,
                  std::string_view when) override {
    static_cast<void>(workers), static_cast<void>(options), static_cast<void>(when);
    Evaluation evaluation;
    evaluation.samples = static_cast<std::int64_t>(test_.size());
    for (const Row& row : test_) {
      const double error = error_of(row);
      evaluation.loss += error * error;
    }
    evaluation.loss /= static_cast<double>(test_.size());
    return evaluation;
  }

  std::span<double> flat_parameters() override { return parameters_; }
  std::size_t averaged() const override { return 1; }
  std::unique_ptr<Evaluator<double>> make_evaluator() override;
  void move_averages(std::span<const double> sums, std::int64_t minibatches) override {
    mean_ += 0.1 * sums[0] / static_cast<double>(minibatches);
  }

 private:
  friend class TinyEvaluator;

  [[nodiscard]] double error_of(const Row& row) const {
    double error = parameters_[kWeights] - row.y;
    for (std::size_t i = 0; i < kWeights; ++i) error += parameters_[i] * row.x[i];
    return error;
  }

  std::array<double, kParameters> parameters_{};
  double mean_ = 0;
  std::string fingerprint_;
  std::vector<Row> train_;
  std::vector<Row> test_;
  std::vector<TrainedArray> trained_;
  std::vector<NamedArray> arrays_;
  std::vector<NamedArray> buffers_;
};

class TinyEvaluator final : public Evaluator<double> {
 public:
  explicit TinyEvaluator(const TinyObjective& objective) : objective_(objective) {}

  double evaluate(const Minibatch& minibatch, const Leaf<double>& leaf,
                  EvaluatorProgress& progress) override {
    progress.enter(Phase::forward);
    const auto count = static_cast<double>(minibatch.samples.size());
    // Noise that depends on the minibatch.
    const StreamKey& stream = minibatch.stream;
    const double noise =
        0.01 * number_of(seed_of(stream.seed, {stream.epoch, stream.step, stream.minibatch}));
    double loss = 0;
    for (const std::int64_t sample : minibatch.samples) {
      const Row& row = objective_.train_[static_cast<std::size_t>(sample)];
      const double error = objective_.error_of(row) + noise;
      loss += error * error / count;
      for (std::size_t i = 0; i < kWeights; ++i) leaf.gradient[i] += 2 * error * row.x[i] / count;
      leaf.gradient[kWeights] += 2 * error / count;
      leaf.averaged[0] += (row.y - objective_.mean_) / count;
    }
    return loss;
  }

 private:
  const TinyObjective& objective_;
};

std::unique_ptr<Evaluator<double>> TinyObjective::make_evaluator() {
  return std::make_unique<TinyEvaluator>(*this);
}

}  // namespace

std::unique_ptr<ObjectiveOf<double>> tiny_objective(std::int64_t samples, std::uint64_t seed) {
  return std::make_unique<TinyObjective>(samples, seed);
}

}  // namespace rubato::test
