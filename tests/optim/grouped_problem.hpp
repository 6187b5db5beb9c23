#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "loop/optim/make_optimizer.hpp"
#include "optim/flat_problem.hpp"

namespace rubato::test {

[[nodiscard]] inline const std::vector<std::pair<std::string, OptimizerOptions>>& every_kind() {
  static const std::vector<std::pair<std::string, OptimizerOptions>> all{
      {"sgd", {.weight_decay = 0.01}},
      {"sgd with momentum", {.momentum = 0.9, .weight_decay = 0.01}},
      {"Nesterov", {.method = SgdOptions{.nesterov = true}, .momentum = 0.9, .weight_decay = 0.01}},
      {"sgd of MXNet's form",
       {.method = SgdOptions{.momentum_form = MomentumForm::mxnet},
        .momentum = 0.9,
        .weight_decay = 0.01}},
      {"Nesterov of MXNet's form",
       {.method = SgdOptions{.nesterov = true, .momentum_form = MomentumForm::mxnet},
        .momentum = 0.9,
        .weight_decay = 0.01}},
      {"lars", {.method = LarsOptions{.trust = 0.02}, .momentum = 0.9, .weight_decay = 0.01}},
      {"lars of PyTorch's form",
       {.method = LarsOptions{.momentum_form = MomentumForm::pytorch, .trust = 0.02},
        .momentum = 0.9,
        .weight_decay = 0.01}},
      {"adam",
       {.method = AdamOptions{.beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-6}, .weight_decay = 0.01}},
      {"adam with amsgrad",
       {.method = AdamOptions{.beta2 = 0.5, .amsgrad = true}, .weight_decay = 0.01}},
      {"adamw",
       {.method = AdamOptions{.beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-6, .decoupled = true},
        .weight_decay = 0.01}},
      {"adam of minibatches",
       {.method = AdamOptions{.beta2 = 0.5, .second_moment = SecondMoment::minibatch},
        .weight_decay = 0.01}},
      {"rmsprop",
       {.method = RmspropOptions{.alpha = 0.8, .epsilon = 1e-6},
        .momentum = 0.9,
        .weight_decay = 0.01}},
      {"centred rmsprop",
       {.method = RmspropOptions{.alpha = 0.8, .centered = true}, .momentum = 0.5}},
      {"adagrad",
       {.method = AdagradOptions{.lr_decay = 0.1, .initial_accumulator = 0.2, .epsilon = 1e-6},
        .weight_decay = 0.01}},
      {"muon",
       {.method = MuonOptions{.momentum = 0.9, .beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-6},
        .weight_decay = 0.01}}};
  return all;
}

/// Whether the numbers of its kind are libtorch's; SGD, LARS and Muon have formulas of their own.
[[nodiscard]] inline bool is_adaptive(const OptimizerOptions& options) {
  return !facts_of(options.method).follows_sums &&
         !std::holds_alternative<MuonOptions>(options.method);
}

/// Of odd sizes, so that there is padding between them.
inline const std::vector<std::size_t> kThreeTensors{35, 5, 3};

// A step as one group or another takes it. No tensor is in the group of its own number.
inline constexpr std::array<std::size_t, 3> kGroupOf{2, 0, 1};
inline const std::vector<GroupOptions> kAllOptions{
    {},
    {.learning_rate_factor = 0.5, .weight_decay = 0.03, .momentum = 0.3},
    {.learning_rate_factor = 2, .weight_decay = 0.0, .momentum = 0.0, .layer_wise = false}};
inline constexpr std::array<double, 3> kGroupFactors{1.5, 3, 0.25};
inline constexpr std::array<double, 3> kLayerFactors{5, 2, 4};
inline constexpr std::array<double, 3> kRateFactors{2, 0.5, 0.5};  // those of the layout
inline constexpr double kDecayFactor = 3;
inline constexpr double kGradientFactor = 0.25;
inline constexpr double kBound = 0.3;

/// Of one tensor, what the step comes to.
struct Expectation {
  double rate = 0;
  double decay = 0;
  double momentum = 0;
  bool layer_wise = true;
};
[[nodiscard]] inline Expectation expectation_of(std::size_t tensor, const OptimizerOptions& options,
                                                double rate) {
  const std::size_t group = kGroupOf.at(tensor);
  const GroupOptions& own = kAllOptions.at(group);
  const double factor = own.layer_wise ? kLayerFactors.at(tensor) : 1;
  return {.rate = rate * own.learning_rate_factor * kRateFactors.at(tensor) *
                  kGroupFactors.at(group) * factor,
          .decay = own.weight_decay.value_or(options.weight_decay) * kDecayFactor,
          .momentum = own.momentum.value_or(options.momentum),
          .layer_wise = own.layer_wise};
}

/// Up to three tensors in those groups, and steps with all of those factors.
struct GroupedProblem : FlatProblem {
  explicit GroupedProblem(const std::vector<std::size_t>& of_tensors = kThreeTensors)
      : FlatProblem(of_tensors) {}

  /// The first tensor is a matrix of 5 rows, if it has as many.
  [[nodiscard]] ParameterLayout layout() const {
    ParameterLayout layout =
        FlatProblem::layout({kGroupOf.begin(), kGroupOf.begin() + std::ssize(sizes)});
    if (sizes.front() % 5 == 0) layout.matrices = {{.rows = 5, .columns = sizes.front() / 5}};
    layout.rate_factors = {kRateFactors.begin(), kRateFactors.begin() + std::ssize(sizes)};
    return layout;
  }
  [[nodiscard]] std::unique_ptr<FlatOptimizer<double>> make(const OptimizerOptions& options) const {
    return make_optimizer<double>(options, layout(), kAllOptions);
  }
  /// So far from 0 that the bound is reached.
  void draw() { FlatProblem::draw(/*deviation=*/2); }
  /// The gradient that is applied to a tensor.
  [[nodiscard]] std::vector<double> gradient(std::size_t i) {
    std::vector<double> gradient(sum_of(i).begin(), sum_of(i).end());
    for (double& value : gradient) value = std::clamp(value * kGradientFactor, -kBound, kBound);
    return gradient;
  }

  void step(FlatOptimizer<double>& optimizer, double rate,
            std::span<const std::size_t> unreached = {}) {
    std::vector<ParameterNorms> norms;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      norms.push_back(
          {.weight_square = square_sum(values(i)), .gradient_square = square_sum(gradient(i))});
    }
    // As if half of the minibatches had twice the mean gradient.
    std::vector<double> squares(sum.size());
    std::ranges::transform(sum, squares.begin(), [](double value) { return 2 * value * value; });
    optimizer.step({.parameters = parameters,
                    .gradient_sum = sum,
                    .gradient_factor = kGradientFactor,
                    .clip = kBound,
                    .rates = {.learning_rate = 1e9,
                              .update_rate = rate,
                              .weight_decay_factor = kDecayFactor,
                              .group_factors = kGroupFactors,
                              .layer_factors = kLayerFactors},
                    .layers = norms,
                    .unreached = unreached,
                    .square_sum = squares,
                    .square_factor = kGradientFactor * kGradientFactor},
                   workers);
  }

  Workers workers{2};
};

}  // namespace rubato::test
