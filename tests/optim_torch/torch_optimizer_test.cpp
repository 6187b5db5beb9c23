// Optimizers that users make with libtorch, and SGD in groups beside libtorch's.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <rubato/base/state.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "libtorch/model/shared_state.hpp"
#include "libtorch/torch/objective/torch_objective.hpp"
#include "loop/optim/make_optimizer.hpp"
#include "support/error_of.hpp"

namespace rubato {
namespace {

constexpr int kSteps = 200;

// A model of three tensors, of odd sizes so that there is padding between them.
Model small_model(at::ScalarType type) {
  at::manual_seed(3);
  Model model;
  for (const auto& [name, shape] : std::vector<std::pair<std::string, std::vector<std::int64_t>>>{
           {"weight", {5, 7}}, {"bias", {5}}, {"scale", {3}}}) {
    model.parameters.push_back({name, at::randn(shape, type).requires_grad_()});
  }
  model.set_training = [](bool) {};
  return model;
}

ParameterLayout layout_of(const SharedState& shared, std::vector<std::size_t> groups) {
  return {.layer_ends = shared.parameter_layout().ends(), .layer_groups = std::move(groups)};
}

// Parameters, and the sum of a step's gradients, as optimizers and libtorch see them.
template <class T>
struct Problem {
  Problem() : shared(small_model(at::CppTypeToScalarType<T>::value)) {
    for (const auto& [name, tensor] : shared.parameters()) {
      plain.push_back(tensor.clone().requires_grad_());
    }
    sum = at::zeros_like(shared.flat_parameters());
    sum_views = shared.parameter_layout().views(sum);
  }

  // Draws the gradients of a step of `minibatches`, for both sides.
  void draw(double minibatches) {
    for (std::size_t i = 0; i < plain.size(); ++i) {
      sum_views[i].copy_(at::randn_like(sum_views[i]));
      plain[i].mutable_grad() = sum_views[i] * (T{1} / static_cast<T>(minibatches));
    }
  }

  Update<T> update(double minibatches, const Rates& rates) {
    const auto size = static_cast<std::size_t>(shared.flat_parameters().numel());
    return {.parameters = {shared.flat_parameters().template data_ptr<T>(), size},
            .gradient_sum = {sum.template data_ptr<T>(), size},
            .gradient_factor = T{1} / static_cast<T>(minibatches),
            .rates = rates};
  }

  double difference(std::size_t i) const {
    return (shared.parameters()[i].tensor - plain[i].detach()).abs().max().template item<double>();
  }
  bool same_bits() const {
    for (std::size_t i = 0; i < plain.size(); ++i) {
      if (!at::equal(shared.parameters()[i].tensor, plain[i].detach())) return false;
    }
    return true;
  }

  SharedState shared;
  std::vector<at::Tensor> plain;
  at::Tensor sum;
  std::vector<at::Tensor> sum_views;
};

// Groups: the weight; the bias without decay at half the rate; the scale without momentum.
const std::vector<GroupOptions> kGroups{
    {}, {.learning_rate_factor = 0.5, .weight_decay = 0.0, .layer_wise = false}, {.momentum = 0.0}};
const std::array<double, 3> kRateFactor{1, 0.5, 1};
const std::array<double, 3> kDecay{0.01, 0, 0.01};
const std::array<double, 3> kMomentum{0.9, 0.9, 0};

TEST(SgdOfGroups, IsTorchsSgdOfGroups) {
  Workers workers(2);
  Problem<double> problem;
  const auto sgd = make_optimizer<double>({.momentum = 0.9, .weight_decay = 0.01},
                                          layout_of(problem.shared, {0, 1, 2}), kGroups);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (std::size_t i = 0; i < 3; ++i) {
    groups.emplace_back(
        std::vector<at::Tensor>{problem.plain[i]},
        std::make_unique<torch::optim::SGDOptions>(
            torch::optim::SGDOptions(1).momentum(kMomentum[i]).weight_decay(kDecay[i])));
  }
  torch::optim::SGD reference(groups, torch::optim::SGDOptions(1));
  const std::array<double, 3> rule{1, 3, 0.25};  // a rule's factors on the groups
  for (int step = 0; step < kSteps; ++step) {
    problem.draw(4);
    const double rate = 0.02 + 0.001 * (step % 5);
    for (std::size_t i = 0; i < 3; ++i) {
      reference.param_groups()[i].options().set_lr(rate * kRateFactor[i] * rule[i]);
    }
    sgd->step(problem.update(4, {.update_rate = rate, .group_factors = rule}), workers);
    reference.step();
  }
  for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(problem.difference(i), 1e-12);
}

// Factors of the rates without groups: the scale has a rate of 0.
const std::vector<double> kFactors{1, 10, 0};

ParameterLayout layout_with_factors(const SharedState& shared) {
  ParameterLayout layout = layout_of(shared, {0, 0, 0});
  layout.rate_factors = kFactors;
  return layout;
}

// Beside an optimizer of libtorch that has a group for each tensor, with its rate.
template <class Optimizer, class Options>
void expect_rates_of_torchs_groups(const OptimizerOptions& options, const Options& of_torch) {
  Workers workers(2);
  Problem<double> problem;
  const at::Tensor scale = problem.plain[2].detach().clone();
  const auto optimizer = make_optimizer<double>(options, layout_with_factors(problem.shared), {});
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (std::size_t i = 0; i < 3; ++i) {
    groups.emplace_back(std::vector<at::Tensor>{problem.plain[i]},
                        std::make_unique<Options>(of_torch));
    groups.back().options().set_lr(of_torch.lr() * kFactors[i]);
  }
  Optimizer reference(groups, of_torch);
  for (int step = 0; step < kSteps; ++step) {
    problem.draw(4);
    optimizer->step(problem.update(4, {.update_rate = of_torch.lr()}), workers);
    reference.step();
  }
  for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(problem.difference(i), 1e-11) << i;
  EXPECT_TRUE(at::equal(problem.shared.parameters()[2].tensor, scale)) << "a rate of 0";
}

TEST(RateFactors, AreTheRatesOfTorchsGroups) {
  expect_rates_of_torchs_groups<torch::optim::SGD>(
      {.momentum = 0.9, .weight_decay = 0.01},
      torch::optim::SGDOptions(0.01).momentum(0.9).weight_decay(0.01));
  expect_rates_of_torchs_groups<torch::optim::AdamW>(
      {.method = AdamOptions{.decoupled = true}, .weight_decay = 0.1},
      torch::optim::AdamWOptions(0.01).weight_decay(0.1));
}

TEST(TorchOptimizer, MultipliesTheRatesOfTensors) {
  Workers workers(1);
  Problem<double> problem;
  TorchOptimizer<double> adapter(
      layout_with_factors(problem.shared), trained_arrays(problem.shared), [](auto groups) {
        return std::make_unique<torch::optim::SGD>(std::move(groups), torch::optim::SGDOptions(1));
      });
  problem.draw(1);
  adapter.step(problem.update(1, {.update_rate = 0.5}), workers);
  for (std::size_t i = 0; i < 3; ++i) {
    const at::Tensor moved = problem.plain[i].detach() - problem.shared.parameters()[i].tensor;
    EXPECT_TRUE(at::allclose(moved, 0.5 * kFactors[i] * problem.sum_views[i], 1e-12, 1e-12)) << i;
  }
}

// The same bits as the optimizer alone, at changing rates. `make` takes tensors or groups of them.
template <class T, class Make>
void expect_same_bits(const Make& make) {
  Workers workers(2);
  Problem<T> problem;
  TorchOptimizer<T> adapter(layout_of(problem.shared, {0, 0, 0}), trained_arrays(problem.shared),
                            make);
  EXPECT_FALSE(adapter.follows_sums());
  const auto reference = make(problem.plain);
  for (int step = 0; step < kSteps; ++step) {
    problem.draw(4);
    const double rate = 0.01 + 0.001 * (step % 5);
    reference->param_groups().front().options().set_lr(rate);
    adapter.step(problem.update(4, {.update_rate = rate}), workers);
    reference->step();
    ASSERT_TRUE(problem.same_bits()) << "step " << step;
  }
  EXPECT_GT((problem.plain[0].detach() -
             small_model(at::CppTypeToScalarType<T>::value).parameters[0].tensor.detach())
                .abs()
                .max()
                .template item<double>(),
            0.01)
      << "200 steps lead somewhere";
}

template <class T>
class TorchOptimizerOf : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(TorchOptimizerOf, Types);

TYPED_TEST(TorchOptimizerOf, HasTheBitsOfTheOptimizerAlone) {
  expect_same_bits<TypeParam>([](auto parameters) {
    return std::make_unique<torch::optim::Adam>(
        std::move(parameters),
        torch::optim::AdamOptions().betas({0.8, 0.999}).weight_decay(0.01).amsgrad(true));
  });
  expect_same_bits<TypeParam>([](auto parameters) {
    return std::make_unique<torch::optim::RMSprop>(
        std::move(parameters),
        torch::optim::RMSpropOptions().momentum(0.5).alpha(0.9).centered(true));
  });
  expect_same_bits<TypeParam>([](auto parameters) {
    return std::make_unique<torch::optim::Adagrad>(
        std::move(parameters),
        torch::optim::AdagradOptions().lr_decay(0.01).initial_accumulator_value(0.1));
  });
}

TEST(TorchOptimizer, GivesGroupsTheirOwnRates) {
  Workers workers(1);
  Problem<double> problem;
  const auto decaying = [](double rate) {
    return torch::optim::AdamWOptions(rate).weight_decay(0.02);
  };
  TorchOptimizer<double> adapter(
      layout_of(problem.shared, {0, 1, 2}), trained_arrays(problem.shared),
      [&](auto groups) {
        return std::make_unique<torch::optim::AdamW>(std::move(groups), decaying(1));
      },
      kGroups);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (std::size_t i = 0; i < 3; ++i) {
    groups.emplace_back(
        std::vector<at::Tensor>{problem.plain[i]},
        std::make_unique<torch::optim::AdamWOptions>(decaying(0.1 * kRateFactor[i])));
  }
  torch::optim::AdamW reference(groups);
  for (int step = 0; step < 10; ++step) {
    problem.draw(2);
    adapter.step(problem.update(2, {.update_rate = 0.1}), workers);
    reference.step();
  }
  EXPECT_TRUE(problem.same_bits());
}

// Two of the same steps, whose tensors lie elsewhere, one of them saved and loaded: what they show
// is the same, and has what they remember.
TEST(TorchOptimizer, ShowsWhatItRemembersWithoutAddresses) {
  using Shown = std::map<std::string, std::string>;
  const auto shown_by = [](const TorchOptimizer<double>& optimizer) {
    Shown shown;
    const ShowEntry show = [&](std::string_view name, std::span<const std::byte> bytes) {
      const bool first =
          shown
              .emplace(name, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()))
              .second;
      EXPECT_TRUE(first) << name;
    };
    show_state(optimizer, show);
    return shown;
  };
  Workers workers(1);
  const Problem<double> one;
  Problem<double> other;
  const auto adapter_of = [](const Problem<double>& problem) {
    return std::make_unique<TorchOptimizer<double>>(
        layout_of(problem.shared, {0, 1, 2}), trained_arrays(problem.shared), [](auto groups) {
          return std::make_unique<torch::optim::Adam>(std::move(groups),
                                                      torch::optim::AdamOptions().amsgrad(true));
        });
  };
  const auto trained = adapter_of(other);
  const Shown before = shown_by(*trained);
  other.draw(2);
  trained->step(other.update(2, {.update_rate = 0.1}), workers);
  const Shown after = shown_by(*trained);
  EXPECT_NE(after, before);
  const auto loaded = adapter_of(one);
  load_state(*loaded, state_of(*trained));
  EXPECT_EQ(shown_by(*loaded), after);
  // The moments of the weight, the bias and the scale.
  for (const auto& [index, size] :
       std::vector<std::pair<int, std::size_t>>{{0, 35}, {1, 5}, {2, 3}}) {
    const std::string of = "optimizer.torch/state/parameter " + std::to_string(index) + "/";
    for (const char* const moment : {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}) {
      ASSERT_TRUE(after.contains(of + moment)) << of + moment;
      EXPECT_EQ(after.at(of + moment).size(), size * sizeof(double)) << of + moment;
    }
    EXPECT_EQ(after.at(of + "step"), "1");
  }
}

// What is not one of libtorch's that can be followed.
TEST(TorchOptimizer, RefusesWhatItCannotDrive) {
  Problem<double> problem;
  const auto error = [&](const TorchOptimizerMaker& make) {
    return error_of([&] {
      TorchOptimizer<double>(layout_of(problem.shared, {0, 1, 2}), trained_arrays(problem.shared),
                             make);
    });
  };
  EXPECT_EQ(error([](auto) { return nullptr; }),
            "an optimizer of libtorch must keep the 3 parameter groups it is made for");
  EXPECT_EQ(error([](auto groups) {
              groups.pop_back();
              return std::make_unique<torch::optim::Adam>(std::move(groups));
            }),
            "an optimizer of libtorch must keep the 3 parameter groups it is made for");
}

TEST(TorchOptimizer, RefusesAStateThatIsNotIts) {
  Problem<double> problem;
  TorchOptimizer<double> rmsprop(
      layout_of(problem.shared, {0, 1, 2}), trained_arrays(problem.shared),
      [](auto groups) { return std::make_unique<torch::optim::RMSprop>(std::move(groups)); });
  State state;
  state.put_array("optimizer.torch",
                  {.type = ElementType::u8, .shape = {3}, .bytes = std::string(3, 'x')});
  EXPECT_THAT(error_of([&] { load_state(rmsprop, state); }),
              testing::StartsWith("the state's 'optimizer.torch' is of another optimizer: "));
}

}  // namespace
}  // namespace rubato
