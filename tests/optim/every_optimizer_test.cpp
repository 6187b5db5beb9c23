// What every optimizer has to follow, one like the other: the options of a tensor's group, the
// rule's factors, the factor of the gradient and its bound; and its state.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>

#include <rubato/state/state_file.hpp>
#include <rubato/torch/arrays.hpp>
#include <rubato/torch/torch_optimizer.hpp>

#include "model/shared_state.hpp"
#include "optim/lookahead.hpp"
#include "optim/make_optimizer.hpp"
#include "support/error_of.hpp"
#include "torch/trained_arrays.hpp"

namespace rubato {
namespace {

using Values = std::vector<at::Tensor>;
using Shapes = std::vector<std::vector<std::int64_t>>;

// Of odd sizes, so that there is padding between them.
const Shapes kThreeTensors{{5, 7}, {5}, {3}};
const Shapes kLargerTensors{{50, 7}, {5}, {3}};
const Shapes kOneTensor{{4}};

const std::vector<std::pair<std::string, OptimizerOptions>>& every_kind() {
  static const std::vector<std::pair<std::string, OptimizerOptions>> all{
      {"sgd", {.weight_decay = 0.01}},
      {"sgd with momentum", {.momentum = 0.9, .weight_decay = 0.01}},
      {"Nesterov", {.momentum = 0.9, .weight_decay = 0.01, .nesterov = true}},
      {"sgd of MXNet's form",
       {.momentum = 0.9, .weight_decay = 0.01, .momentum_form = MomentumForm::mxnet}},
      {"lars", {.kind = OptimizerKind::lars, .momentum = 0.9, .weight_decay = 0.01, .trust = 0.02}},
      {"lars of PyTorch's form",
       {.kind = OptimizerKind::lars,
        .momentum = 0.9,
        .weight_decay = 0.01,
        .momentum_form = MomentumForm::pytorch,
        .trust = 0.02}},
      {"adam",
       {.kind = OptimizerKind::adam,
        .weight_decay = 0.01,
        .beta1 = 0.8,
        .beta2 = 0.99,
        .epsilon = 1e-6}},
      {"adam with amsgrad",
       {.kind = OptimizerKind::adam, .weight_decay = 0.01, .beta2 = 0.5, .amsgrad = true}},
      {"adamw",
       {.kind = OptimizerKind::adamw,
        .weight_decay = 0.01,
        .beta1 = 0.8,
        .beta2 = 0.99,
        .epsilon = 1e-6}},
      {"rmsprop",
       {.kind = OptimizerKind::rmsprop,
        .momentum = 0.9,
        .weight_decay = 0.01,
        .alpha = 0.8,
        .epsilon = 1e-6}},
      {"centred rmsprop",
       {.kind = OptimizerKind::rmsprop, .momentum = 0.5, .alpha = 0.8, .centered = true}},
      {"adagrad",
       {.kind = OptimizerKind::adagrad,
        .weight_decay = 0.01,
        .lr_decay = 0.1,
        .initial_accumulator = 0.2,
        .epsilon = 1e-6}}};
  return all;
}

bool libtorch_has(const OptimizerOptions& options) {
  return options.kind != OptimizerKind::sgd && options.kind != OptimizerKind::lars;
}

Model model_of(const Shapes& shapes) {
  at::manual_seed(7);
  Model model;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    model.parameters.push_back(
        {std::to_string(i), at::randn(shapes[i], at::kDouble).requires_grad_()});
  }
  model.set_training = [](bool) {};
  return model;
}

// A step as one group or another takes it. No tensor is in the group of its own number.
const std::array<std::size_t, 3> kGroupOf{2, 0, 1};
const std::vector<GroupOptions> kAllOptions{
    {},
    {.learning_rate_factor = 0.5, .weight_decay = 0.03, .momentum = 0.3},
    {.learning_rate_factor = 2, .weight_decay = 0.0, .momentum = 0.0, .layer_wise = false}};
const std::array<double, 3> kGroupFactors{1.5, 3, 0.25};
const std::array<double, 3> kLayerFactors{5, 2, 4};
constexpr double kDecayFactor = 3;
constexpr double kGradientFactor = 0.25;
constexpr double kBound = 0.3;

// Of one tensor, what the step comes to.
struct Expectation {
  double rate = 0;
  double decay = 0;
  double momentum = 0;
  bool layer_wise = true;
};
Expectation expectation_of(std::size_t tensor, const OptimizerOptions& options, double rate) {
  const std::size_t group = kGroupOf.at(tensor);
  const GroupOptions& own = kAllOptions.at(group);
  const double factor = own.layer_wise ? kLayerFactors.at(tensor) : 1;
  return {.rate = rate * own.learning_rate_factor * kGroupFactors.at(group) * factor,
          .decay = own.weight_decay.value_or(options.weight_decay) * kDecayFactor,
          .momentum = own.momentum.value_or(options.momentum),
          .layer_wise = own.layer_wise};
}

// The flat optimizer's side.
struct Flat {
  explicit Flat(const Shapes& shapes = kThreeTensors)
      : shared(model_of(shapes)), sum(at::zeros_like(shared.flat_parameters())) {}

  [[nodiscard]] ParameterLayout layout() const {
    return {.layer_ends = shared.parameter_layout().ends(),
            .layer_groups = {kGroupOf.begin(), kGroupOf.begin() + static_cast<std::ptrdiff_t>(
                                                                      shared.parameters().size())}};
  }
  [[nodiscard]] std::unique_ptr<FlatOptimizer<double>> make(const OptimizerOptions& options) const {
    return make_optimizer<double>(options, layout(), kAllOptions);
  }
  void draw() {
    for (const at::Tensor& view : shared.parameter_layout().views(sum)) {
      view.copy_(at::randn_like(view) * 2);
    }
  }
  // The gradient that is applied to a tensor.
  [[nodiscard]] at::Tensor gradient(std::size_t i) const {
    return (shared.parameter_layout().views(sum)[i] * kGradientFactor).clamp(-kBound, kBound);
  }
  [[nodiscard]] at::Tensor values(std::size_t i) const { return shared.parameters()[i].tensor; }

  void step(FlatOptimizer<double>& optimizer, double rate) {
    std::vector<ParameterNorms> norms;
    for (std::size_t i = 0; i < shared.parameters().size(); ++i) {
      norms.push_back({.weight_square = values(i).square().sum().item<double>(),
                       .gradient_square = gradient(i).square().sum().item<double>()});
    }
    const auto size = static_cast<std::size_t>(shared.flat_parameters().numel());
    optimizer.step({.parameters = {shared.flat_parameters().data_ptr<double>(), size},
                    .gradient_sum = {sum.data_ptr<double>(), size},
                    .gradient_factor = kGradientFactor,
                    .clip = kBound,
                    .rates = {.learning_rate = 1e9,
                              .update_rate = rate,
                              .weight_decay_factor = kDecayFactor,
                              .group_factors = kGroupFactors,
                              .layer_factors = kLayerFactors},
                    .layers = norms},
                   workers);
  }

  SharedState shared;
  at::Tensor sum;
  Workers workers{2};
};

// SGD and LARS by their formulas.
void step_by_formula(const OptimizerOptions& options, const Expectation& e, const at::Tensor& w,
                     const at::Tensor& g, at::Tensor& velocity) {
  const bool lars = options.kind == OptimizerKind::lars;
  const auto form =
      options.momentum_form.value_or(lars ? MomentumForm::mxnet : MomentumForm::pytorch);
  const double w_norm = w.norm().item<double>();
  double rate = e.rate;
  if (lars && e.layer_wise) {
    rate *= options.trust * w_norm / (g.norm().item<double>() + e.decay * w_norm);
  }
  const at::Tensor all = g + e.decay * w;
  velocity = e.momentum * velocity + (form == MomentumForm::mxnet ? rate * all : all);
  const at::Tensor moved = options.nesterov ? e.momentum * velocity + all : velocity;
  w.sub_(form == MomentumForm::mxnet ? moved : rate * moved);
}

template <class Options>
void set_group(torch::optim::OptimizerParamGroup& group, Options options) {
  group.set_options(std::make_unique<Options>(std::move(options)));
}

// Libtorch's optimizer, a parameter group for each tensor; the factor on the weight decay included.
std::unique_ptr<torch::optim::Optimizer> of_torch(const OptimizerOptions& o, const Values& plain) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const Expectation e = expectation_of(i, o, 1);
    groups.emplace_back(std::vector<at::Tensor>{plain[i]});
    switch (o.kind) {
      case OptimizerKind::adam:
        set_group(groups.back(), torch::optim::AdamOptions()
                                     .betas({o.beta1, o.beta2})
                                     .eps(o.epsilon)
                                     .amsgrad(o.amsgrad)
                                     .weight_decay(e.decay));
        break;
      case OptimizerKind::adamw:
        set_group(groups.back(), torch::optim::AdamWOptions()
                                     .betas({o.beta1, o.beta2})
                                     .eps(o.epsilon)
                                     .amsgrad(o.amsgrad)
                                     .weight_decay(e.decay));
        break;
      case OptimizerKind::rmsprop:
        set_group(groups.back(), torch::optim::RMSpropOptions()
                                     .alpha(o.alpha)
                                     .eps(o.epsilon)
                                     .centered(o.centered)
                                     .momentum(e.momentum)
                                     .weight_decay(e.decay));
        break;
      default:
        set_group(groups.back(), torch::optim::AdagradOptions()
                                     .lr_decay(o.lr_decay)
                                     .initial_accumulator_value(o.initial_accumulator)
                                     .eps(o.epsilon)
                                     .weight_decay(e.decay));
    }
  }
  switch (o.kind) {
    case OptimizerKind::adam:
      return std::make_unique<torch::optim::Adam>(std::move(groups));
    case OptimizerKind::adamw:
      return std::make_unique<torch::optim::AdamW>(std::move(groups));
    case OptimizerKind::rmsprop:
      return std::make_unique<torch::optim::RMSprop>(std::move(groups));
    default:
      return std::make_unique<torch::optim::Adagrad>(
          std::move(groups),
          torch::optim::AdagradOptions().initial_accumulator_value(o.initial_accumulator));
  }
}

TEST(EveryOptimizer, FollowsGroupsRulesAndBounds) {
  for (const auto& [name, options] : every_kind()) {
    SCOPED_TRACE(name);
    Flat flat;
    const auto optimizer = flat.make(options);
    Values plain;
    Values velocity;
    for (std::size_t i = 0; i < 3; ++i) {
      plain.push_back(flat.values(i).clone().requires_grad_());
      velocity.push_back(at::zeros_like(plain.back()));
    }
    const auto reference = libtorch_has(options) ? of_torch(options, plain) : nullptr;
    const Values before = [&] {
      Values copies;
      for (const at::Tensor& tensor : plain) copies.push_back(tensor.detach().clone());
      return copies;
    }();
    for (int step = 0; step < 12; ++step) {
      flat.draw();
      const double rate = 0.01 + 0.002 * (step % 3);
      for (std::size_t i = 0; i < 3; ++i) {
        const Expectation e = expectation_of(i, options, rate);
        plain[i].mutable_grad() = flat.gradient(i);
        if (reference) {
          reference->param_groups()[i].options().set_lr(e.rate);
        } else {
          const at::NoGradGuard no_grad;
          step_by_formula(options, e, plain[i], plain[i].grad(), velocity[i]);
        }
      }
      if (reference) reference->step();
      flat.step(*optimizer, rate);
      for (std::size_t i = 0; i < 3; ++i) {
        ASSERT_TRUE(at::allclose(flat.values(i), plain[i].detach(), 1e-11, 1e-13))
            << "tensor " << i << " in step " << step;
      }
    }
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_FALSE(at::allclose(flat.values(i), before[i], 1e-4, 1e-4)) << i << " stands still";
    }
  }
}

// The momentum may be of a group alone.
TEST(EveryOptimizer, HasTheMomentumOfAGroupWhereItHasNoneItself) {
  for (const OptimizerKind kind :
       {OptimizerKind::sgd, OptimizerKind::lars, OptimizerKind::rmsprop}) {
    SCOPED_TRACE(choice_name(kOptimizers, kind));
    const auto moved = [&](std::optional<double> of_all, std::optional<double> of_group) {
      Flat flat(kOneTensor);
      std::vector<GroupOptions> groups(3);
      groups[kGroupOf[0]].momentum = of_group;
      const auto optimizer = make_optimizer<double>({.kind = kind, .momentum = of_all.value_or(0)},
                                                    flat.layout(), groups);
      for (int step = 0; step < 3; ++step) {
        flat.draw();
        flat.step(*optimizer, 0.1);
      }
      return flat.values(0).clone();
    };
    EXPECT_TRUE(at::equal(moved({}, 0.9), moved(0.9, {})));
    EXPECT_FALSE(at::allclose(moved({}, 0.9), moved({}, {})));
  }
}

// Nothing to adapt to: weights or gradients of zero take the rate as it is.
TEST(Lars, TakesTheRateWhereTheWeightsOrTheGradientAreZero) {
  for (const bool weights : {true, false}) {
    Flat flat(kOneTensor);
    flat.draw();
    if (weights) flat.shared.flat_parameters().zero_();
    if (!weights) flat.sum.zero_();
    const at::Tensor before = flat.values(0).clone();
    const auto optimizer = make_optimizer<double>(
        {.kind = OptimizerKind::lars, .weight_decay = 0.1},
        {.layer_ends = flat.shared.parameter_layout().ends(), .layer_groups = {0}}, {});
    flat.step(*optimizer, 0.1);
    const double rate = 0.1 * kGroupFactors[0] * kLayerFactors[0];
    const at::Tensor wanted = before - rate * (flat.gradient(0) + 0.1 * kDecayFactor * before);
    EXPECT_TRUE(at::allclose(flat.values(0), wanted, 1e-12, 1e-14)) << weights;
  }
}

std::unique_ptr<FlatOptimizer<double>> around(std::unique_ptr<FlatOptimizer<double>> optimizer,
                                              const std::optional<LookaheadOptions>& lookahead) {
  if (!lookahead) return optimizer;
  return std::make_unique<Lookahead<double>>(std::move(optimizer), *lookahead);
}

// Through the bytes of a file, after any number of steps, none included.
TEST(EveryOptimizer, GoesOnFromItsState) {
  constexpr int kAll = 7;
  for (const auto& [name, options] : every_kind()) {
    for (const std::optional<LookaheadOptions>& lookahead :
         {std::optional<LookaheadOptions>(),
          {{.k = 2, .alpha = 0.3}},
          {{.k = 3, .start = LookaheadStart::after_first_update}}}) {
      SCOPED_TRACE(name + (lookahead ? " in Lookahead of " + std::to_string(lookahead->k) : ""));
      std::string expected;
      for (const int saved_after : {-1, 0, 1, 4}) {
        Flat flat;
        auto optimizer = around(flat.make(options), lookahead);
        for (int step = 0; step < kAll; ++step) {
          if (step == saved_after) {
            State state;
            optimizer->save(state);
            optimizer = around(flat.make(options), lookahead);
            optimizer->load(parse_state(state_bytes(state), "the state"));
          }
          flat.draw();
          flat.step(*optimizer, 0.01);
        }
        const at::Tensor& end = flat.shared.flat_parameters();
        const std::string bytes(static_cast<const char*>(end.data_ptr()), end.nbytes());
        if (saved_after < 0) expected = bytes;
        EXPECT_TRUE(bytes == expected) << "saved after " << saved_after;
      }
    }
  }
}

// Of a model of another size, or with nothing in it.
TEST(EveryOptimizer, RefusesAStateThatIsNotIts) {
  for (const auto& [name, options] : every_kind()) {
    SCOPED_TRACE(name);
    Flat flat;
    const auto optimizer = flat.make(options);
    EXPECT_NE(test::error_of([&] { optimizer->load(State()); }), "no error");
    Flat other(kLargerTensors);
    const auto larger = other.make(options);
    State state;
    larger->save(state);
    EXPECT_NE(test::error_of([&] { optimizer->load(state); }), "no error");
  }
  Flat flat;
  TorchOptimizer<double> rmsprop(flat.layout(), trained_arrays(flat.shared), [](auto groups) {
    return std::make_unique<torch::optim::RMSprop>(std::move(groups));
  });
  State state;
  state.put_array("optimizer.torch",
                  {.type = ElementType::u8, .shape = {3}, .bytes = std::string(3, 'x')});
  EXPECT_THAT(test::error_of([&] { rmsprop.load(state); }),
              testing::StartsWith("the state's 'optimizer.torch' is of another optimizer: "));
  // The slow weights are looked at where they are first needed.
  Flat other(kLargerTensors);
  const auto without_momentum = [](const Flat& of) {
    return make_optimizer<double>({}, of.layout(), {});
  };
  Lookahead<double> lookahead(without_momentum(other), {});
  other.step(lookahead, 0.1);
  State slow;
  lookahead.save(slow);
  Lookahead<double> smaller(without_momentum(flat), {});
  smaller.load(slow);
  EXPECT_EQ(test::error_of([&] { flat.step(smaller, 0.1); }),
            "Lookahead's slow weights are those of another model");
}

// slow + alpha (fast - slow) every k updates, from before the first or after it.
TEST(Lookahead, MeetsEveryKUpdates) {
  for (const auto start :
       {LookaheadStart::before_first_update, LookaheadStart::after_first_update}) {
    for (const double alpha : {0.25, 1.0}) {
      constexpr std::int64_t kEvery = 3;
      Flat flat(kOneTensor);
      Flat fast(kOneTensor);
      Lookahead<double> lookahead(flat.make({}), {.k = kEvery, .alpha = alpha, .start = start});
      const auto plain = fast.make({});
      const bool after = start == LookaheadStart::after_first_update;
      at::Tensor slow = fast.values(0).clone();
      for (int step = 1; step <= 10; ++step) {
        flat.draw();
        fast.sum.copy_(flat.sum);
        flat.step(lookahead, 0.1);
        fast.step(*plain, 0.1);
        if (after && step == 1) slow = fast.values(0).clone();
        const std::int64_t updates = after ? step - 1 : step;
        if (updates > 0 && updates % kEvery == 0) {
          slow = slow + alpha * (fast.values(0) - slow);
          fast.values(0).copy_(slow);
        }
        ASSERT_TRUE(at::allclose(flat.values(0), fast.values(0), 1e-12, 1e-14)) << step;
      }
    }
  }
  Flat flat;
  const auto of = [&](const OptimizerOptions& options) {
    return Lookahead<double>(flat.make(options), {});
  };
  EXPECT_TRUE(of({.kind = OptimizerKind::lars}).needs_parameter_norms());
  EXPECT_FALSE(of({}).needs_parameter_norms());
  EXPECT_TRUE(of({}).follows_sums());
  EXPECT_TRUE(of({.kind = OptimizerKind::lars}).follows_sums());
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::adamw,
                                   OptimizerKind::rmsprop, OptimizerKind::adagrad}) {
    EXPECT_FALSE(of({.kind = kind}).follows_sums()) << choice_name(kOptimizers, kind);
  }
}

// An option is in range, one past its border is not: for the optimizer and for each group.
TEST(MakeOptimizer, KnowsTheBordersOfItsOptions) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  Flat flat;
  const auto accepts = [&](const OptimizerOptions& options, std::vector<GroupOptions> groups = {}) {
    return test::error_of([&] {
             static_cast<void>(make_optimizer<double>(options, flat.layout(), std::move(groups)));
           }) == "no error";
  };
  for (const OptimizerKind kind :
       {OptimizerKind::sgd, OptimizerKind::lars, OptimizerKind::adam, OptimizerKind::adamw,
        OptimizerKind::rmsprop, OptimizerKind::adagrad}) {
    SCOPED_TRACE(choice_name(kOptimizers, kind));
    EXPECT_TRUE(accepts({.kind = kind}));
    for (const double bad : {-0.01, kNan}) {
      EXPECT_FALSE(accepts({.kind = kind, .weight_decay = bad}));
      EXPECT_FALSE(accepts({.kind = kind}, {{}, {}, {.weight_decay = bad}}));
      EXPECT_FALSE(accepts({.kind = kind}, {{}, {.momentum = bad}}));
      EXPECT_FALSE(accepts({.kind = kind}, {{.learning_rate_factor = bad}}));
    }
    EXPECT_FALSE(accepts({.kind = kind}, {{.momentum = 1}}));
    EXPECT_TRUE(accepts({.kind = kind}, {{.learning_rate_factor = 0, .weight_decay = 0.0}}));
  }
  // A group without momentum under Nesterov's form is plain SGD.
  EXPECT_TRUE(accepts({.momentum = 0.9, .nesterov = true}, {{.momentum = 0.0}}));
  EXPECT_FALSE(accepts({.nesterov = true}, {{.momentum = 0.9}}));
  for (const double bad : {-0.01, 1.0, kNan}) {
    EXPECT_FALSE(accepts({.kind = OptimizerKind::adam, .beta1 = bad}));
    EXPECT_FALSE(accepts({.kind = OptimizerKind::adam, .beta2 = bad}));
    EXPECT_FALSE(accepts({.kind = OptimizerKind::rmsprop, .alpha = bad}));
    EXPECT_FALSE(accepts({.kind = OptimizerKind::rmsprop, .momentum = bad}));
  }
  for (const double bad : {-0.01, kNan}) {
    EXPECT_FALSE(accepts({.kind = OptimizerKind::adam, .epsilon = bad}));
    EXPECT_FALSE(accepts({.kind = OptimizerKind::adagrad, .lr_decay = bad}));
    EXPECT_FALSE(accepts({.kind = OptimizerKind::adagrad, .initial_accumulator = bad}));
    EXPECT_FALSE(accepts({.kind = OptimizerKind::lars, .trust = bad}));
  }
  EXPECT_FALSE(accepts({.kind = OptimizerKind::lars, .trust = 0}));
  EXPECT_TRUE(accepts({.kind = OptimizerKind::adam, .beta1 = 0, .beta2 = 0, .epsilon = 0}));
  EXPECT_TRUE(accepts({.kind = OptimizerKind::rmsprop, .alpha = 0}));
}

// What is not one of libtorch's that can be followed.
TEST(TorchOptimizer, RefusesWhatItCannotDrive) {
  Flat flat;
  const auto error = [&](const TorchOptimizerMaker& make) {
    return test::error_of(
        [&] { TorchOptimizer<double>(flat.layout(), trained_arrays(flat.shared), make); });
  };
  EXPECT_EQ(error([](auto) { return nullptr; }),
            "an optimizer of libtorch must keep the 3 parameter groups it is made for");
  EXPECT_EQ(error([](auto groups) {
              groups.pop_back();
              return std::make_unique<torch::optim::Adam>(std::move(groups));
            }),
            "an optimizer of libtorch must keep the 3 parameter groups it is made for");
}

}  // namespace
}  // namespace rubato
