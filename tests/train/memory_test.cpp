// What a trainer says it needs, where it cannot have it.

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>
#include <rubato/testing.hpp>

#include "loop/runtime/host_sum.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "train/around.hpp"

namespace rubato {
namespace {

// Of a million parameters, of 8 bytes each; it wants more memory than there is.
class GreedyObjective final : public test::Around {
 public:
  GreedyObjective() : Around(noisy_quadratic<double>({.dim = 1'000'000, .samples = 64})) {}
  bool has_test() const override { return true; }
  std::size_t step_bytes() const override { return std::size_t{3} << 60; }
};

std::string error_with(TrainOptions options, const Trace& trace) {
  options.epochs = 1;
  options.minibatch_size = 2;
  options.reduce = "tree";
  return error_of([&] {
    const Trainer trainer(std::make_unique<GreedyObjective>(), trace, std::move(options));
  });
}

std::string error_with(TrainOptions options, const std::vector<std::int64_t>& batches) {
  return error_with(std::move(options), test::trace_of(batches));
}

TEST(MemoryOfATraining, HasWhatTheObjectiveTakesForItself) {
  EXPECT_THAT(error_with({.threads = 1}, {16}),
              HasSubstr("8 MB for the optimizer, 3.46e+06 TB for the objective's own copies and "));
}

TEST(MemoryOfATraining, HasWhatTheOptimizerRemembers) {
  const OptimizerOptions adam{.method = AdamOptions{}};
  EXPECT_THAT(error_with({.optimizer = adam, .threads = 1}, {16}),
              HasSubstr("16 MB for the optimizer"));
  EXPECT_THAT(error_with({.optimizer = adam, .lookahead = LookaheadOptions{}, .threads = 1}, {16}),
              HasSubstr("24 MB for the optimizer"));
  // The buffers have squares beside gradients.
  const OptimizerOptions squaring{.method = AdamOptions{.second_moment = SecondMoment::minibatch}};
  const auto buffers_with = [](const OptimizerOptions& optimizer) {
    const std::string error = error_with({.optimizer = optimizer, .threads = 1}, {16});
    return error.substr(0, error.find(" (8 minibatches"));
  };
  EXPECT_THAT(buffers_with(adam), EndsWith("gradient buffers of 8 MB"));
  EXPECT_THAT(buffers_with(squaring), EndsWith("gradient buffers of 16 MB"));
  OwnOptimizer own{.remembered = 5};
  own.of_double = [](const auto&) { return std::unique_ptr<FlatOptimizer<double>>(); };
  EXPECT_THAT(error_with({.own_optimizer = own, .threads = 1}, {16}),
              HasSubstr("40 MB for the optimizer"));
}

// The weights that are tested are not those that a checkpoint of that moment has.
TEST(MemoryOfATraining, HasTheStateOnceMoreWhereSlowWeightsAreTested) {
  const auto error_of_lookahead = [](LookaheadWeights weights) {
    return error_with({.lookahead = LookaheadOptions{.weights = weights}, .threads = 1}, {16});
  };
  EXPECT_THAT(error_of_lookahead(LookaheadWeights::slow),
              HasSubstr("16 MB for the optimizer, 24 MB for a copy of the state during tests"));
  EXPECT_THAT(error_of_lookahead(LookaheadWeights::fast), Not(HasSubstr("a copy of the state")));
  EXPECT_THAT(error_with({.threads = 1}, {16}), Not(HasSubstr("a copy of the state")));
  EXPECT_THAT(error_with({.ema_half_life = 100, .threads = 1}, {16}),
              HasSubstr("16 MB for the optimizer, 24 MB for a copy of the state during tests"));
}

// Muon remembers up to two values of each parameter, and needs four more for its products.
TEST(MemoryOfATraining, HasTheProductsOfMuon) {
  EXPECT_THAT(error_with({.optimizer = {.method = MuonOptions{}}, .threads = 1}, {16}),
              HasSubstr("48 MB for the optimizer"));
}

TEST(MemoryOfATraining, HasTheGradientsOfTwoStepsOfOneMinibatch) {
  const std::string pair = "16 MB for the gradients of two steps";
  EXPECT_THAT(error_with({.rule = "adascale", .threads = 1}, {16, 2}), HasSubstr(pair));
  EXPECT_THAT(error_with({.log_noise = true, .threads = 1}, {2}), HasSubstr(pair));
  EXPECT_THAT(error_with({.rule = "adascale", .threads = 1}, {16, 4}), Not(HasSubstr(pair)))
      << "no step has one minibatch";
  EXPECT_THAT(error_with({.threads = 1}, {2}), Not(HasSubstr(pair))) << "nobody compares";
}

// Two hosts, of which the second does three quarters of eight minibatches: as 2 and 4.
TEST(MemoryOfATraining, HasTheMessagesBetweenHosts) {
  const auto hosts = test::emulated_hosts({1, 3});
  // Out go two sums, and one's half of three comes in; the sum.
  EXPECT_THAT(error_with({.threads = 1, .hosts = hosts[1]}, {16}),
              HasSubstr("36 MB for messages between hosts"));
  EXPECT_THAT(error_with({.threads = 1, .hosts = hosts[1]}, {16}),
              HasSubstr("training needs 3 gradient buffers of 8 MB (8 minibatches in a step"))
      << "of a subtree of four leaves";
  EXPECT_THAT(error_with({.threads = 1, .hosts = hosts[0]}, {16}),
              HasSubstr("28 MB for messages between hosts"));
  EXPECT_THAT(error_with({.threads = 1, .hosts = test::emulated_hosts({1})[0]}, {16}),
              Not(HasSubstr("between hosts")));
}

// The first of two equal hosts has all cores in the last step, and with them all minibatches.
TEST(MemoryOfATraining, KnowsWhichHostHasTheCores) {
  const auto host = test::emulated_hosts({1, 1})[0];
  const auto message = [&](const TraceStep& last) {
    return error_with({.threads = 1, .hosts = host},
                      Trace({{.batch_size = 16}, last}, TraceEnd::cycle, "made"));
  };
  EXPECT_THAT(message({.batch_size = 16}), HasSubstr("3 gradient buffers of 8 MB"));
  EXPECT_THAT(message({.batch_size = 16, .cores = 2, .host_cores = {2, 0}}),
              HasSubstr("4 gradient buffers of 8 MB"));
}

TEST(LoadOfHost, IsItsRunOfTheTree) {
  const auto hosts = test::emulated_hosts({1, 3});
  const HostLoad small = load_of_host(*hosts[0], {.leaves = 8, .cores = 16}, 1000, 4);
  EXPECT_EQ(small.most_leaves, 2);
  EXPECT_EQ(small.cores, 4);
  // One root of its own, three in all.
  EXPECT_EQ(small.bytes, 4 * ((1 + 1) * 1000 + 3 * 500));
  const HostLoad large = load_of_host(*hosts[1], {.leaves = 8, .cores = 16}, 1000, 4);
  EXPECT_EQ(large.most_leaves, 4);
  EXPECT_EQ(large.cores, 12);
  EXPECT_EQ(large.bytes, 4 * ((2 + 1) * 1000 + 3 * 500));
  // A step of one minibatch is the second's alone.
  EXPECT_EQ(load_of_host(*hosts[0], {}, 1000, 4).most_leaves, 0);
  EXPECT_EQ(load_of_host(*hosts[0], {}, 1000, 4).cores, 1);
}

}  // namespace
}  // namespace rubato
