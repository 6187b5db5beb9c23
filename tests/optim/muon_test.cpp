// Muon against its formulas, in loops of their own.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <rubato/base/state.hpp>

#include "loop/optim/make_optimizer.hpp"
#include "optim/grouped_problem.hpp"

namespace rubato {
namespace {

using test::all_close;
using test::FlatProblem;

using Values = std::vector<double>;

// a b, of n x k and k x m.
Values product(const Values& a, const Values& b, std::size_t n, std::size_t k, std::size_t m) {
  Values result(n * m);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < m; ++j) {
      for (std::size_t u = 0; u < k; ++u) result[i * m + j] += a[i * k + u] * b[u * m + j];
    }
  }
  return result;
}

Values transposed(const Values& a, std::size_t n, std::size_t m) {
  Values result(n * m);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < m; ++j) result[j * n + i] = a[i * m + j];
  }
  return result;
}

Values orthogonalised(Values x, MatrixShape shape, std::int64_t steps) {
  const bool tall = shape.rows > shape.columns;
  if (tall) {
    x = transposed(x, shape.rows, shape.columns);
    std::swap(shape.rows, shape.columns);
  }
  const std::size_t n = shape.rows;
  const std::size_t m = shape.columns;
  const double norm = std::sqrt(test::square_sum(x));
  for (double& value : x) value /= norm + 1e-7;
  for (std::int64_t step = 0; step < steps; ++step) {
    const Values a = product(x, transposed(x, n, m), n, m, n);
    const Values squared = product(a, a, n, n, n);
    Values b(n * n);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = -4.7750 * a[i] + 2.0315 * squared[i];
    const Values moved = product(b, x, n, n, m);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] + moved[i];
  }
  return tall ? transposed(x, n, m) : x;
}

// The shapes are smaller and larger than a tile, and one matrix is a single row.
constexpr std::array<MatrixShape, 4> kShapes{{{70, 131}, {131, 70}, {1, 9}, {6, 4}}};

FlatProblem matrices_and_a_vector() {
  std::vector<std::size_t> sizes;
  sizes.reserve(kShapes.size() + 1);
  for (const MatrixShape& shape : kShapes) sizes.push_back(shape.rows * shape.columns);
  sizes.insert(sizes.begin() + 2, 13);
  return FlatProblem(sizes);
}
ParameterLayout layout_of(const FlatProblem& of) {
  ParameterLayout layout = of.layout({0, 1, 0, 0, 1});
  layout.matrices = {kShapes[0], kShapes[1], {}, kShapes[2], kShapes[3]};
  layout.rate_factors = {1, 0.5, 3, 2, 0.25};
  return layout;
}
const std::vector<GroupOptions> kGroups{{}, {.learning_rate_factor = 0.5, .weight_decay = 0.03}};

Update<double> update_of(FlatProblem& of, double rate) {
  return {.parameters = of.parameters,
          .gradient_sum = of.sum,
          .gradient_factor = 0.25,
          .clip = 0.4,
          .rates = {.update_rate = rate, .weight_decay_factor = 2}};
}

TEST(Muon, FollowsItsFormulas) {
  Workers workers(2);
  const MuonOptions plain{.momentum = 0.8, .beta1 = 0.7, .beta2 = 0.9, .epsilon = 1e-6};
  MuonOptions jordans = plain;
  jordans.nesterov = false;
  jordans.scale = MuonScale::jordan;
  jordans.steps = 2;
  for (const MuonOptions& muon : {plain, jordans}) {
    const OptimizerOptions options{.method = muon, .weight_decay = 0.01};
    FlatProblem flat = matrices_and_a_vector();
    FlatProblem of_adam = flat;
    const auto optimizer = make_optimizer<double>(options, layout_of(flat), kGroups);
    const auto adam = make_optimizer<double>({.method = AdamOptions{.beta1 = muon.beta1,
                                                                    .beta2 = muon.beta2,
                                                                    .epsilon = muon.epsilon,
                                                                    .decoupled = true},
                                              .weight_decay = 0.01},
                                             layout_of(flat), kGroups);
    std::vector<Values> wanted;
    std::vector<Values> mean;
    for (std::size_t i = 0; i < flat.sizes.size(); ++i) {
      wanted.push_back(flat.copy_of(i));
      mean.emplace_back(flat.sizes[i]);
    }
    for (int step = 0; step < 12; ++step) {
      flat.draw(2);
      of_adam.sum = flat.sum;
      const double rate = 0.01 + 0.002 * (step % 3);
      const ParameterLayout layout = layout_of(flat);
      for (std::size_t i = 0; i < flat.sizes.size(); ++i) {
        const MatrixShape shape = layout.matrices[i];
        if (shape.rows == 0) continue;
        const bool other = layout.layer_groups[i] == 1;
        const double of_tensor = (other ? 0.5 * rate : rate) * layout.rate_factors[i];
        const double decay = 2 * (other ? 0.03 : 0.01);
        const auto rows = static_cast<double>(shape.rows);
        const auto columns = static_cast<double>(shape.columns);
        const double scale = muon.scale == MuonScale::adamw
                                 ? 0.2 * std::sqrt(std::max(rows, columns))
                                 : std::sqrt(std::max(1.0, rows / columns));
        Values update(flat.sizes[i]);
        for (std::size_t k = 0; k < update.size(); ++k) {
          const double g = std::clamp(0.25 * flat.sum_of(i)[k], -0.4, 0.4);
          mean[i][k] = muon.momentum * mean[i][k] + (1 - muon.momentum) * g;
          update[k] =
              muon.nesterov ? muon.momentum * mean[i][k] + (1 - muon.momentum) * g : mean[i][k];
        }
        update = orthogonalised(update, shape, muon.steps);
        for (std::size_t k = 0; k < update.size(); ++k) {
          wanted[i][k] = (1 - of_tensor * decay) * wanted[i][k] - of_tensor * scale * update[k];
        }
      }
      optimizer->step(update_of(flat, rate), workers);
      adam->step(update_of(of_adam, rate), workers);
      wanted[2] = of_adam.copy_of(2);
      for (std::size_t i = 0; i < flat.sizes.size(); ++i) {
        ASSERT_TRUE(all_close(flat.values(i), wanted[i], 1e-9, 1e-11))
            << "tensor " << i << " in step " << step;
      }
      EXPECT_EQ(flat.copy_of(2), wanted[2]) << "a vector is AdamW's";
    }
  }
}

// The singular values of an update are between 0.7 and 1.2, as Jordan has measured, so that the sum
// of their squares is near the smaller dimension. Those of the gradient are not.
TEST(Muon, MakesUpdatesOrthogonal) {
  Workers workers(1);
  FlatProblem flat = matrices_and_a_vector();
  const Values before = flat.copy_of(0);
  const auto optimizer = make_optimizer<double>(
      {.method = MuonOptions{.momentum = 0, .scale = MuonScale::jordan}}, layout_of(flat), {});
  flat.draw();
  optimizer->step(update_of(flat, 1), workers);
  Values moved = flat.copy_of(0);
  for (std::size_t k = 0; k < moved.size(); ++k) moved[k] -= before[k];
  EXPECT_GT(test::square_sum(moved), 0.7 * 0.7 * 70);
  EXPECT_LT(test::square_sum(moved), 1.2 * 1.2 * 70);
}

TEST(Muon, HasTheSameBitsOnAnyNumberOfThreads) {
  const auto trained = [](int threads) {
    Workers workers(threads);
    FlatProblem flat = matrices_and_a_vector();
    const auto optimizer =
        make_optimizer<double>({.method = MuonOptions()}, layout_of(flat), kGroups);
    for (int step = 0; step < 3; ++step) {
      flat.draw();
      optimizer->step(update_of(flat, 0.01), workers);
    }
    return flat.parameters;
  };
  const Values alone = trained(1);
  for (const int threads : {2, 3, 7}) EXPECT_TRUE(trained(threads) == alone) << threads;
}

// An answer of a rule is the option of one step, and forgetting is beginning anew.
TEST(Muon, FollowsTheAnswersOfARule) {
  Workers workers(1);
  const auto trained = [&](double momentum, const OptimizerAnswer& second) {
    FlatProblem flat = matrices_and_a_vector();
    const auto optimizer =
        make_optimizer<double>({.method = MuonOptions{.momentum = momentum}}, layout_of(flat), {});
    for (const OptimizerAnswer& answer : {OptimizerAnswer(), second}) {
      flat.draw();
      Update<double> update = update_of(flat, 0.01);
      update.rates.optimizer = answer;
      optimizer->step(update, workers);
    }
    return flat.copy_of(0);
  };
  const Values usual = trained(0.9, {});
  EXPECT_EQ(trained(0.9, {.momentum = 0.9}), usual);
  EXPECT_NE(trained(0.9, {.momentum = 0.5}), usual);
  const Values anew = trained(0.9, {.mean_factor = 0.0});
  EXPECT_NE(anew, usual);
  // The first gradient without a memory points into its own direction, whatever the momentum.
  EXPECT_TRUE(all_close(trained(0.9, {.momentum = 0.3, .mean_factor = 0.0}), anew, 1e-4, 1e-6));
  const OptimizerNumbers numbers =
      make_optimizer<double>({.method = MuonOptions{.momentum = 0.7, .beta2 = 0.99}}, {}, {})
          ->numbers();
  EXPECT_EQ(numbers.momentum, 0.7);
  EXPECT_EQ(numbers.beta2, 0.99);
  EXPECT_TRUE(numbers.has_mean && numbers.has_squares);
}

TEST(Muon, UpdatesTensorsOfTwoDimensionsThatNoPatternTakes) {
  const auto shape = [](const OptimizerMethod& method, std::string name,
                        std::vector<std::int64_t> of) {
    const MatrixShape found =
        matrix_shape(method, NamedArray{.name = std::move(name), .shape = std::move(of)});
    return std::pair(found.rows, found.columns);
  };
  using Shape = std::pair<std::size_t, std::size_t>;
  const MuonOptions muon{.adamw = "*embed*"};
  EXPECT_EQ(shape(muon, "layer1.weight", {3, 4}), Shape(3, 4));
  EXPECT_EQ(shape(muon, "conv.weight", {8, 3, 5, 5}), Shape(8, 75));
  EXPECT_EQ(shape(muon, "layer1.bias", {3}), Shape(0, 0));
  EXPECT_EQ(shape(muon, "embedding.weight", {3, 4}), Shape(0, 0));
  EXPECT_EQ(shape(MuonOptions(), "embedding.weight", {3, 4}), Shape(3, 4));
  EXPECT_EQ(shape(AdamOptions(), "embedding.weight", {3, 4}), Shape(3, 4));
}

}  // namespace
}  // namespace rubato
