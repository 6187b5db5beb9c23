#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <rubato/loop/eigen.hpp>
#include <rubato/steps/random.hpp>

#include "base/core/portable_math.hpp"
#include "dense_parameters.hpp"

namespace rubato {

namespace {

template <class T>
class QuadraticEvaluator final : public Evaluator<T> {
 public:
  QuadraticEvaluator(const std::vector<double>& eigenvalues, double noise,
                     std::span<const T> parameters)
      : eigenvalues_(eigenvalues), noise_(noise), parameters_(parameters) {}

  double evaluate(const Minibatch& minibatch, const Leaf<T>& leaf,
                  EvaluatorProgress& progress) override {
    progress.enter(Phase::backward);
    const NormalNumbers normal(minibatch.stream);
    const double variance = noise_ / static_cast<double>(minibatch.samples.size());
    double loss = 0;
    std::array<double, 2> pair{};
    for (std::size_t i = 0; i < eigenvalues_.size(); ++i) {
      if (i % 2 == 0) pair = normal.pair(i / 2);
      const double eigenvalue = eigenvalues_[i];
      const double parameter = static_cast<double>(parameters_[i]);
      const double noise = std::sqrt(variance * eigenvalue) * pair[i % 2];
      const double slope = eigenvalue * parameter;
      loss += (0.5 * slope + noise) * parameter;
      leaf.gradient[i] = static_cast<T>(slope + noise);
    }
    return loss;
  }

 private:
  const std::vector<double>& eigenvalues_;
  double noise_;
  std::span<const T> parameters_;
};

template <class T>
class NoisyQuadratic final : public ObjectiveOf<T> {
 public:
  explicit NoisyQuadratic(const QuadraticOptions& options)
      : options_(options),
        eigenvalues_(eigenvalues_of(options)),
        parameters_({{"parameters", {options.dim}}}) {
    for (T& value : parameters_.arrays().front().template values<T>()) value = 1;
  }

  std::int64_t samples() const override { return options_.samples; }
  const std::vector<TrainedArray>& trained() const override { return parameters_.trained(); }
  const std::vector<NamedArray>& parameters() const override { return parameters_.arrays(); }
  std::span<T> flat_parameters() override { return parameters_.values(); }

  // There are no data to identify, so the fingerprint names the options that determine the
  // gradients.
  std::string fingerprint() const override {
    return fmt::format("quadratic of condition {} with noise {}",
                       options_.condition.value_or(static_cast<double>(options_.dim)),
                       options_.noise);
  }
  std::string test_fingerprint() const override { return "the expected loss"; }

  bool has_test() const override { return true; }
  Evaluation test(Workers& workers, const EvaluationOptions& options,
                  std::string_view when) override {
    static_cast<void>(workers), static_cast<void>(options), static_cast<void>(when);
    const std::span<const T> parameters = parameters_.values();
    double loss = 0;
    for (std::size_t i = 0; i < eigenvalues_.size(); ++i) {
      const double parameter = static_cast<double>(parameters[i]);
      loss += 0.5 * eigenvalues_[i] * parameter * parameter;
    }
    return {.samples = options_.samples, .loss = loss};
  }

  std::unique_ptr<Evaluator<T>> make_evaluator() override {
    return std::make_unique<QuadraticEvaluator<T>>(eigenvalues_, options_.noise,
                                                   parameters_.values());
  }

 private:
  QuadraticOptions options_;
  std::vector<double> eigenvalues_;
  FlatParameters<T> parameters_;
};

}  // namespace

std::vector<double> eigenvalues_of(const QuadraticOptions& options) {
  require_valid(options);
  std::vector<double> eigenvalues(static_cast<std::size_t>(options.dim), 1.0);
  if (options.dim == 1) return eigenvalues;
  const auto dim = static_cast<double>(options.dim);
  const double power = options.condition ? exact::log(*options.condition) / exact::log(dim) : 1;
  for (std::size_t i = 1; i < eigenvalues.size(); ++i) {
    eigenvalues[i] = exact::pow(static_cast<double>(i + 1), -power);
  }
  return eigenvalues;
}

template <class T>
std::unique_ptr<ObjectiveOf<T>> noisy_quadratic(const QuadraticOptions& options) {
  return std::make_unique<NoisyQuadratic<T>>(options);
}

template std::unique_ptr<ObjectiveOf<float>> noisy_quadratic(const QuadraticOptions&);
template std::unique_ptr<ObjectiveOf<double>> noisy_quadratic(const QuadraticOptions&);

}  // namespace rubato
