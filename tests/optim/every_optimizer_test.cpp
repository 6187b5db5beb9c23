// What every optimizer has to follow, one like the other: the options of a tensor's group, the
// rule's factors, the factor of the gradient and its bound; and its state.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/state.hpp>

#include "loop/optim/make_optimizer.hpp"
#include "optim/grouped_problem.hpp"
#include "support/error_of.hpp"

namespace rubato {
namespace {

using test::all_close;
using test::every_kind;
using test::GroupedProblem;

const std::vector<std::size_t> kLargerTensors{350, 5, 3};
const std::vector<std::size_t> kOneTensor{4};

// SGD and LARS by their formulas.
void step_by_formula(const OptimizerOptions& options, const test::Expectation& e,
                     std::vector<double>& w, const std::vector<double>& g,
                     std::vector<double>& velocity) {
  const bool lars = std::holds_alternative<LarsOptions>(options.method);
  const auto of_sgd = method_options<SgdOptions>(options.method);
  const auto of_lars = method_options<LarsOptions>(options.method);
  const auto form = lars ? of_lars.momentum_form.value_or(MomentumForm::mxnet)
                         : of_sgd.momentum_form.value_or(MomentumForm::pytorch);
  const bool inside = form == MomentumForm::mxnet;
  double rate = e.rate;
  if (lars && e.layer_wise) {
    const double weight = std::sqrt(test::square_sum(w));
    rate *= of_lars.trust * weight / (std::sqrt(test::square_sum(g)) + e.decay * weight);
  }
  for (std::size_t k = 0; k < w.size(); ++k) {
    const double all = (inside ? rate : 1) * (g[k] + e.decay * w[k]);
    velocity[k] = e.momentum * velocity[k] + all;
    const double moved = of_sgd.nesterov ? e.momentum * velocity[k] + all : velocity[k];
    w[k] -= inside ? moved : rate * moved;
  }
}

// The adaptive ones are compared with libtorch's: tests/optim_torch. Muon has a test of its own.
TEST(EveryOptimizer, FollowsGroupsRulesAndBounds) {
  for (const auto& [name, options] : every_kind()) {
    if (!facts_of(options.method).follows_sums) continue;
    SCOPED_TRACE(name);
    GroupedProblem flat;
    const auto optimizer = flat.make(options);
    std::vector<std::vector<double>> before;
    for (std::size_t i = 0; i < 3; ++i) before.push_back(flat.copy_of(i));
    std::vector<std::vector<double>> expected = before;
    std::vector<std::vector<double>> velocity;
    for (const std::size_t size : flat.sizes) velocity.emplace_back(size);
    for (int step = 0; step < 12; ++step) {
      flat.draw();
      const double rate = 0.01 + 0.002 * (step % 3);
      for (std::size_t i = 0; i < 3; ++i) {
        step_by_formula(options, test::expectation_of(i, options, rate), expected[i],
                        flat.gradient(i), velocity[i]);
      }
      flat.step(*optimizer, rate);
      for (std::size_t i = 0; i < 3; ++i) {
        ASSERT_TRUE(all_close(flat.values(i), expected[i], 1e-11, 1e-13))
            << "tensor " << i << " in step " << step;
      }
    }
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_FALSE(all_close(flat.values(i), before[i], 1e-4, 1e-4)) << i << " stands still";
    }
  }
}

// The momentum may be of a group alone.
TEST(EveryOptimizer, HasTheMomentumOfAGroupWhereItHasNoneItself) {
  for (const char* const name : {"sgd", "lars", "rmsprop"}) {
    SCOPED_TRACE(name);
    const auto moved = [&](std::optional<double> of_all, std::optional<double> of_group) {
      GroupedProblem flat(kOneTensor);
      std::vector<GroupOptions> groups(3);
      groups[test::kGroupOf[0]].momentum = of_group;
      const auto optimizer = make_optimizer<double>(
          parse_optimizer(name, {.momentum = of_all.value_or(0)}), flat.layout(), groups);
      for (int step = 0; step < 3; ++step) {
        flat.draw();
        flat.step(*optimizer, 0.1);
      }
      return flat.parameters;
    };
    EXPECT_TRUE(moved({}, 0.9) == moved(0.9, {}));
    EXPECT_FALSE(all_close(moved({}, 0.9), moved({}, {}), 1e-5, 1e-8));
  }
}

// Nothing to adapt to: weights or gradients of zero take the rate as it is.
TEST(Lars, TakesTheRateWhereTheWeightsOrTheGradientAreZero) {
  for (const bool weights : {true, false}) {
    GroupedProblem flat(kOneTensor);
    flat.draw();
    if (weights) std::fill(flat.parameters.begin(), flat.parameters.end(), 0);
    if (!weights) std::fill(flat.sum.begin(), flat.sum.end(), 0);
    const std::vector<double> gradient = flat.gradient(0);
    std::vector<double> wanted = flat.copy_of(0);
    const auto optimizer =
        make_optimizer<double>({.method = LarsOptions{}, .weight_decay = 0.1},
                               {.layer_ends = flat.ends, .layer_groups = {0}}, {});
    flat.step(*optimizer, 0.1);
    const double rate = 0.1 * test::kGroupFactors[0] * test::kLayerFactors[0];
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      wanted[k] -= rate * (gradient[k] + 0.1 * test::kDecayFactor * wanted[k]);
    }
    EXPECT_TRUE(all_close(flat.values(0), wanted, 1e-12, 1e-14)) << weights;
  }
}

// A rule that sums gradients gives the rate of one minibatch: the same step as with the mean of
// three at three times the rate.
TEST(Lars, IsTheSameOfASumAsOfItsMean) {
  test::FlatProblem mean(test::kThreeTensors);
  mean.draw(1);
  test::FlatProblem sum = mean;
  const auto step = [](test::FlatProblem& of, double minibatches, double summed,
                       const Rates& rates) {
    Workers workers(1);
    const auto lars = make_optimizer<double>(
        {.method = LarsOptions{.trust = 0.02}, .weight_decay = 0.01}, of.layout({0, 0, 0}), {});
    std::vector<ParameterNorms> norms;
    for (std::size_t i = 0; i < of.sizes.size(); ++i) {
      norms.push_back(
          {.weight_square = test::square_sum(of.values(i)),
           .gradient_square = test::square_sum(of.sum_of(i)) / (minibatches * minibatches)});
    }
    lars->step({.parameters = of.parameters,
                .gradient_sum = of.sum,
                .gradient_factor = 1 / minibatches,
                .rates = rates,
                .layers = norms,
                .summed = summed},
               workers);
  };
  step(mean, 3, 1, {.update_rate = 0.3});
  step(sum, 1, 3, {.update_rate = 0.1, .weight_decay_factor = 3});
  EXPECT_TRUE(all_close(sum.parameters, mean.parameters, 1e-12, 1e-14));
}

std::unique_ptr<FlatOptimizer<double>> around(std::unique_ptr<FlatOptimizer<double>> optimizer,
                                              const std::optional<LookaheadOptions>& lookahead) {
  if (!lookahead) return optimizer;
  return std::make_unique<Lookahead<double>>(std::move(optimizer), *lookahead,
                                             GroupedProblem().layout());
}

// In the steps that do not reach it, a tensor keeps its values, and all that is remembered of it:
// afterwards it is as if these steps had not been. Others do not notice; nor does a state in
// between.
TEST(EveryOptimizer, LeavesTensorsWithoutAGradientAlone) {
  constexpr std::array<std::size_t, 1> kMiddle{1};
  constexpr std::array<bool, 8> kReached{true, false, true, true, false, false, true, true};
  for (const auto& [name, options] : every_kind()) {
    for (const bool resumed : {false, true}) {
      SCOPED_TRACE(name);
      GroupedProblem all;
      GroupedProblem some;
      GroupedProblem reached;
      auto of_all = all.make(options);
      auto of_some = some.make(options);
      const auto of_reached = reached.make(options);
      for (const bool is_reached : kReached) {
        some.draw();
        all.sum = reached.sum = some.sum;
        const std::vector<double> before = some.copy_of(1);
        if (!is_reached) std::ranges::fill(some.sum_of(1), 0);
        all.step(*of_all, 0.01);
        some.step(*of_some, 0.01, is_reached ? std::span<const std::size_t>() : kMiddle);
        if (is_reached) reached.step(*of_reached, 0.01);
        EXPECT_EQ(some.copy_of(1) == before, !is_reached);
        if (!resumed) continue;
        const State state = state_of(*of_some);
        of_some = some.make(options);
        load_state(*of_some, parse_state(state_bytes(state), "the state"));
      }
      EXPECT_EQ(some.copy_of(1), reached.copy_of(1));
      for (const std::size_t other : {0UL, 2UL}) EXPECT_EQ(some.copy_of(other), all.copy_of(other));
    }
  }
}

TEST(Lookahead, MovesNoTensorWithoutAGradient) {
  constexpr std::array<std::size_t, 1> kMiddle{1};
  GroupedProblem flat;
  Lookahead<double> lookahead(flat.make({}), {.k = 2, .alpha = 0.8}, flat.layout());
  EXPECT_TRUE(lookahead.shown().empty());
  flat.draw();
  flat.step(lookahead, 0.1);
  const std::vector<double> fast = flat.parameters;
  flat.step(lookahead, 0.1, kMiddle);
  EXPECT_THAT(flat.copy_of(1),
              testing::ElementsAreArray(std::span(fast).subspan(flat.begins[1], 5)));
  EXPECT_NE(flat.copy_of(0), std::vector<double>(fast.begin(), fast.begin() + 35));
  // The slow weights of the others are where both met.
  const std::span<const double> slow = lookahead.shown();
  ASSERT_EQ(slow.size(), flat.parameters.size());
  EXPECT_TRUE(all_close(slow.first(35), flat.values(0), 0, 0));
  EXPECT_FALSE(all_close(slow.subspan(flat.begins[1], 5), flat.values(1), 1e-6, 1e-6));
  Lookahead<double> shows_fast(flat.make({}), {.weights = LookaheadWeights::fast});
  flat.step(shows_fast, 0.1);
  EXPECT_TRUE(shows_fast.shown().empty());
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
        GroupedProblem flat;
        auto optimizer = around(flat.make(options), lookahead);
        for (int step = 0; step < kAll; ++step) {
          if (step == saved_after) {
            const State state = state_of(*optimizer);
            optimizer = around(flat.make(options), lookahead);
            load_state(*optimizer, parse_state(state_bytes(state), "the state"));
          }
          flat.draw();
          flat.step(*optimizer, 0.01);
        }
        std::string bytes(flat.parameters.size() * sizeof(double), 0);
        std::memcpy(bytes.data(), flat.parameters.data(), bytes.size());
        if (saved_after < 0) expected = bytes;
        EXPECT_TRUE(bytes == expected) << "saved after " << saved_after;
      }
    }
  }
}

// The metric of elements is what Adam divides by, once it remembers five gradients.
TEST(Adam, HasTheMetricByWhichItDivides) {
  for (const auto& [name, options] : every_kind()) {
    SCOPED_TRACE(name);
    GroupedProblem flat;
    const auto optimizer = flat.make(options);
    const auto* const adam = std::get_if<AdamOptions>(&options.method);
    ASSERT_EQ(optimizer->numbers().has_metric, adam != nullptr);
    if (adam == nullptr) continue;
    std::vector<double> metric(flat.parameters.size());
    for (int update = 1; update <= 7; ++update) {
      EXPECT_EQ(optimizer->fill_metric(metric, flat.workers), update > 5) << update;
      flat.draw();
      flat.step(*optimizer, 0.01);
    }
    ASSERT_TRUE(optimizer->fill_metric(metric, flat.workers));
    const State state = state_of(*optimizer);
    const double left = 1 - std::pow(adam->beta2, 7);
    const auto squares = state.values<double>(adam->amsgrad ? "optimizer.adam.largest_square"
                                                            : "optimizer.adam.square");
    std::vector<double> expected;
    expected.reserve(squares.size());
    for (const double v : squares) {
      expected.push_back(v == 0 ? 0 : 1 / (std::sqrt(v / left) + adam->epsilon));
    }
    EXPECT_TRUE(all_close(metric, expected, 1e-12, 0));

    // The same bits on another number of threads, after a resume and within Lookahead.
    auto resumed = flat.make(options);
    load_state(*resumed, state);
    const Lookahead<double> lookahead(std::move(resumed), {});
    std::vector<double> after(metric.size());
    Workers alone(1);
    ASSERT_TRUE(lookahead.fill_metric(after, alone));
    EXPECT_EQ(after, metric);
  }
}

// Tensors that few updates have reached count for nothing, and so do elements without a gradient
// until now, as units that are dead.
TEST(Adam, HasNoMetricForWhatItDoesNotRemember) {
  Workers workers(1);
  const auto adam = make_optimizer<double>({.method = AdamOptions{}}, {{2, 3}, {0, 0}}, {});
  std::vector<double> parameters{1, 1, 1};
  const std::vector<double> gradient{0.5, 0, 0.5};
  const std::vector<std::size_t> second{1};
  std::vector<double> metric(3);
  const auto update = [&](const OptimizerAnswer& answer, bool reaches_second) {
    adam->step({.parameters = parameters,
                .gradient_sum = gradient,
                .rates = {.optimizer = answer},
                .unreached = reaches_second ? std::span<const std::size_t>() : second},
               workers);
  };
  for (int i = 0; i < 8; ++i) update({}, i < 4);
  ASSERT_TRUE(adam->fill_metric(metric, workers));
  EXPECT_NEAR(metric[0], 2, 1e-6);
  EXPECT_EQ(metric[1], 0);
  EXPECT_EQ(metric[2], 0);
  // It begins anew with the mean squares.
  update({.forget_squares = true}, true);
  for (int i = 1; i < 5; ++i) {
    EXPECT_FALSE(adam->fill_metric(metric, workers)) << i;
    update({}, true);
  }
  EXPECT_TRUE(adam->fill_metric(metric, workers));
  EXPECT_NEAR(metric[2], 2, 1e-6);
}

// What it says before it is made is what it then has.
TEST(EveryOptimizer, RemembersAsManyValuesAsItSays) {
  for (const auto& [name, options] : every_kind()) {
    for (const std::vector<GroupOptions>& groups : {test::kAllOptions, {}}) {
      SCOPED_TRACE(name);
      GroupedProblem flat;
      const auto optimizer = make_optimizer<double>(options, flat.layout(), groups);
      flat.draw();
      flat.step(*optimizer, 0.01);
      std::size_t values = 0;
      const State state = state_of(*optimizer);
      for (const auto& [entry, array] : state.arrays()) {
        if (array.type == ElementType::f64) values += array.bytes.size() / sizeof(double);
      }
      const auto remembered = static_cast<std::size_t>(remembered_values(options, groups));
      if (std::holds_alternative<MuonOptions>(options.method)) {
        // A matrix of 35 values has one of each; the rest has two.
        EXPECT_EQ(values, remembered * (flat.parameters.size() - flat.ends[0]) + 35);
        continue;
      }
      EXPECT_EQ(values, remembered * flat.parameters.size());
    }
  }
}

TEST(EveryOptimizer, RemembersNoVelocityWithoutMomentum) {
  const std::vector<GroupOptions> groups(2);
  EXPECT_EQ(remembered_values({}, groups), 0);
  EXPECT_EQ(remembered_values({.momentum = 0.5}, groups), 1);
  EXPECT_EQ(remembered_values({}, {{}, {.momentum = 0.5}}), 1);
}

// Of a model of another size, or with nothing in it.
TEST(EveryOptimizer, RefusesAStateThatIsNotIts) {
  for (const auto& [name, options] : every_kind()) {
    SCOPED_TRACE(name);
    GroupedProblem flat;
    const auto optimizer = flat.make(options);
    EXPECT_NE(error_of([&] { load_state(*optimizer, State()); }), "no error");
    GroupedProblem other(kLargerTensors);
    const auto larger = other.make(options);
    const State state = state_of(*larger);
    EXPECT_NE(error_of([&] { load_state(*optimizer, state); }), "no error");
  }
  GroupedProblem flat;
  // The slow weights are looked at where they are first needed.
  GroupedProblem other(kLargerTensors);
  const auto without_momentum = [](const GroupedProblem& of) {
    return make_optimizer<double>({}, of.layout(), {});
  };
  Lookahead<double> lookahead(without_momentum(other), {});
  other.step(lookahead, 0.1);
  const State slow = state_of(lookahead);
  Lookahead<double> smaller(without_momentum(flat), {});
  load_state(smaller, slow);
  EXPECT_EQ(error_of([&] { flat.step(smaller, 0.1); }),
            "Lookahead's slow weights are those of another model");
}

// slow + alpha (fast - slow) every k updates, from before the first or after it.
TEST(Lookahead, MeetsEveryKUpdates) {
  for (const auto start :
       {LookaheadStart::before_first_update, LookaheadStart::after_first_update}) {
    for (const double alpha : {0.25, 1.0}) {
      constexpr std::int64_t kEvery = 3;
      GroupedProblem flat(kOneTensor);
      GroupedProblem fast(kOneTensor);
      Lookahead<double> lookahead(flat.make({}), {.k = kEvery, .alpha = alpha, .start = start});
      const auto plain = fast.make({});
      const bool after = start == LookaheadStart::after_first_update;
      std::vector<double> slow = fast.parameters;
      for (int step = 1; step <= 10; ++step) {
        flat.draw();
        fast.sum = flat.sum;
        flat.step(lookahead, 0.1);
        fast.step(*plain, 0.1);
        if (after && step == 1) slow = fast.parameters;
        const std::int64_t updates = after ? step - 1 : step;
        if (updates > 0 && updates % kEvery == 0) {
          for (std::size_t k = 0; k < slow.size(); ++k) {
            slow[k] += alpha * (fast.parameters[k] - slow[k]);
          }
          fast.parameters = slow;
        }
        ASSERT_TRUE(all_close(flat.parameters, fast.parameters, 1e-12, 1e-14)) << step;
      }
    }
  }
  GroupedProblem flat;
  const auto of = [&](const OptimizerOptions& options) {
    return Lookahead<double>(flat.make(options), {});
  };
  EXPECT_TRUE(of({.method = LarsOptions{}}).needs_parameter_norms());
  EXPECT_FALSE(of({}).needs_parameter_norms());
  EXPECT_TRUE(of(parse_optimizer("adam:second-moment=minibatch", {})).needs_minibatch_squares());
  EXPECT_FALSE(of({.method = AdamOptions{}}).needs_minibatch_squares());
  EXPECT_TRUE(of({}).follows_sums());
  EXPECT_TRUE(of({.method = LarsOptions{}}).follows_sums());
  for (const char* const name : {"adam", "adamw", "rmsprop", "adagrad", "muon"}) {
    EXPECT_FALSE(of(parse_optimizer(name, {})).follows_sums()) << name;
  }
}

// An option is in range, one past its border is not: for the optimizer and for each group.
TEST(MakeOptimizer, KnowsTheBordersOfItsOptions) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  GroupedProblem flat;
  const auto accepts = [&](const OptimizerOptions& options, std::vector<GroupOptions> groups = {}) {
    return error_of([&] {
             return make_optimizer<double>(options, flat.layout(), std::move(groups));
           }) == "no error";
  };
  for (const std::string_view name : optimizer_names()) {
    SCOPED_TRACE(name);
    const OptimizerOptions options = parse_optimizer(name, {});
    EXPECT_TRUE(accepts(options));
    for (const double bad : {-0.01, kNan}) {
      EXPECT_FALSE(accepts(parse_optimizer(name, {.weight_decay = bad})));
      EXPECT_FALSE(accepts(options, {{}, {}, {.weight_decay = bad}}));
      EXPECT_FALSE(accepts(options, {{}, {.momentum = bad}}));
      EXPECT_FALSE(accepts(options, {{.learning_rate_factor = bad}}));
    }
    EXPECT_FALSE(accepts(options, {{.momentum = 1}}));
    EXPECT_TRUE(accepts(options, {{.learning_rate_factor = 0, .weight_decay = 0.0}}));
  }
  EXPECT_FALSE(accepts({.weight_decay = std::numeric_limits<double>::infinity()}));
  // A group without momentum under Nesterov's form is plain SGD.
  EXPECT_TRUE(
      accepts({.method = SgdOptions{.nesterov = true}, .momentum = 0.9}, {{.momentum = 0.0}}));
  EXPECT_FALSE(accepts({.method = SgdOptions{.nesterov = true}}, {{.momentum = 0.9}}));
  for (const double bad : {-0.01, 1.0, kNan}) {
    EXPECT_FALSE(accepts({.method = AdamOptions{.beta1 = bad}}));
    EXPECT_FALSE(accepts({.method = AdamOptions{.beta2 = bad}}));
    EXPECT_FALSE(accepts({.method = RmspropOptions{.alpha = bad}}));
    EXPECT_FALSE(accepts({.momentum = bad}));
  }
  for (const double bad : {-0.01, kNan}) {
    EXPECT_FALSE(accepts({.method = AdamOptions{.epsilon = bad}}));
    EXPECT_FALSE(accepts({.method = AdagradOptions{.lr_decay = bad}}));
    EXPECT_FALSE(accepts({.method = AdagradOptions{.initial_accumulator = bad}}));
    EXPECT_FALSE(accepts({.method = LarsOptions{.trust = bad}}));
  }
  EXPECT_FALSE(accepts({.method = LarsOptions{.trust = 0}}));
  for (const std::int64_t bad : {0, 101}) {
    EXPECT_FALSE(accepts({.method = MuonOptions{.steps = bad}}));
  }
  EXPECT_FALSE(accepts({.method = MuonOptions{.momentum = 1}}));
  EXPECT_TRUE(accepts({.method = AdamOptions{.beta1 = 0, .beta2 = 0, .epsilon = 0}}));
  EXPECT_TRUE(accepts({.method = RmspropOptions{.alpha = 0}}));
}

}  // namespace
}  // namespace rubato
