// TinyObjective is linear regression with a gradient in closed form, and has one example of each
// thing that could reveal who computed what: noise that depends on the key of the minibatch, and a
// buffer that averages move and the next step reads. Its rows are hashes of a counter, so tests
// need neither files nor a random generator. all_executions() takes every combination of threads,
// cores, reproducible reducers and assignments, where verify() has a short list
// (executions_to_compare()).

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <rubato/loop/reducer.hpp>
#include <rubato/testing.hpp>

#include "base/core/portable_math.hpp"
#include "base/core/vectors.hpp"

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

Trace trace_of(const std::vector<std::int64_t>& batch_sizes, TraceEnd end) {
  auto steps = vector_of(
      batch_sizes, [](std::int64_t batch_size) { return TraceStep{.batch_size = batch_size}; });
  return Trace(std::move(steps), end, "test trace");
}

void Recorder::on_epoch_begin(Training& training, const EpochStart& epoch) {
  static_cast<void>(training);
  begun.push_back(epoch);
}
void Recorder::on_step(Training& training, const StepRecord& step) {
  steps.push_back(step);
  if (on_each_) on_each_(training, step);
}
void Recorder::on_epoch(Training& training, const EpochRecord& epoch) {
  static_cast<void>(training);
  epochs.push_back(epoch);
}

namespace {

std::string element_text(const NamedArray& array, std::size_t i) {
  switch (array.type) {
    case ElementType::f64:
      return fmt::format("{}", array.values<double>()[i]);
    case ElementType::f32:
      return fmt::format("{}", array.values<float>()[i]);
    case ElementType::i64:
      return fmt::format("{}", array.values<std::int64_t>()[i]);
    default:
      return std::string(name_of(array.type));
  }
}

std::optional<std::string> difference_of_arrays(const std::vector<NamedArray>& one,
                                                const std::vector<NamedArray>& other) {
  if (one.size() != other.size()) {
    return fmt::format("{} arrays and {}", one.size(), other.size());
  }
  for (std::size_t a = 0; a < one.size(); ++a) {
    if (one[a].name != other[a].name || one[a].type != other[a].type ||
        one[a].shape != other[a].shape) {
      return fmt::format("'{}' and '{}' are not alike", one[a].name, other[a].name);
    }
    const std::size_t bytes = size_of(one[a].type);
    for (std::size_t i = 0; i < one[a].size(); ++i) {
      const std::byte* const left = one[a].bytes().data() + i * bytes;
      const std::byte* const right = other[a].bytes().data() + i * bytes;
      if (std::memcmp(left, right, bytes) == 0) continue;
      return fmt::format("{}[{}] is {} and {}", one[a].name, i, element_text(one[a], i),
                         element_text(other[a], i));
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> difference_of(const Trainer& one, const Trainer& other) {
  const auto parameters = difference_of_arrays(one.parameters(), other.parameters());
  return parameters ? parameters : difference_of_arrays(one.buffers(), other.buffers());
}

std::vector<Execution> all_executions(std::int64_t steps) {
  std::vector<Execution> executions{{.what = "one thread, one core"}};
  for (const int threads : {1, 2, 4}) {
    for (const std::int64_t cores : {1, 3, 8, 64}) {
      for (const std::string_view reduce : reducer_names()) {
        if (!is_reproducible(reduce)) continue;
        for (const Assignment assignment : {Assignment::contiguous, Assignment::strided}) {
          executions.push_back({.what = "otherwise shared out",
                                .cores = cores,
                                .threads = threads,
                                .reduce = std::string(reduce),
                                .assignment = assignment});
        }
      }
    }
  }
  for (const int threads : {1, 4}) {
    executions.push_back(
        {.what = "the reducer asked for", .cores = 5, .threads = threads, .reduce = ""});
  }
  for (const double rate : {0.1, 0.5}) {
    executions.push_back({.what = "cores that die", .cores = 5, .threads = 2, .fault_rate = rate});
  }
  for (const int evaluators : {2, 3, 5}) {
    executions.push_back({.what = "evaluators in turns",
                          .cores = 3,
                          .threads = evaluators,
                          .assignment = Assignment::strided,
                          .dealing = Dealing::in_turns});
  }
  for (std::int64_t step = 1; step < steps; ++step) {
    executions.push_back({.what = "a resume", .cores = 3, .threads = 2, .resume_after = step});
  }
  return executions;
}

std::optional<std::string> difference_in_bits(const MakeTrainer& make, std::int64_t steps) {
  Verification verification(make, steps);
  for (const Execution& execution : all_executions(steps)) {
    const ExecutionOutcome outcome = verification.train(execution);
    if (!outcome.difference) continue;
    return fmt::format(
        "{} ({} threads, {} cores, reducer {}, {}{}): {}", execution.what, execution.threads,
        execution.cores, execution.reduce, choice_name(kAssignments, execution.assignment),
        execution.resume_after > 0 ? fmt::format(", after step {}", execution.resume_after) : "",
        *outcome.difference);
  }
  return std::nullopt;
}

}  // namespace rubato::test
