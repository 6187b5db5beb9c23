#include "runs/experiment/design/rate_search.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>

#include "run/runs.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

Tried scored(const std::string& rate, double score) {
  return {.value = rate, .score = score};
}
Tried diverged(const std::string& rate) {
  return {.value = rate, .score = std::nullopt, .is_lost = true};
}

// Everything that is tried where `result` says what a value comes to.
template <class Result>
std::vector<Tried> tried_with(const Tuning& tuning, double start, const Result& result) {
  std::vector<Tried> tried;
  for (auto next = next_values(tuning, start, tried); !next.empty();
       next = next_values(tuning, start, tried)) {
    for (const std::string& value : next) tried.push_back(result(value));
  }
  return tried;
}
template <class Result>
std::vector<Tried> searched(double start, const Result& result) {
  return tried_with({.option = "lr"}, start, result);
}

std::vector<std::string> values_in(const std::vector<Tried>& tried) {
  std::vector<std::string> values;
  for (const Tried& one : tried) values.push_back(one.value);
  return values;
}
std::string best_in(const std::vector<Tried>& tried) {
  return tried[best_of(tried).value()].value;
}

// The better, the nearer.
auto peak_at(double best) {
  return [best](const std::string& rate) {
    return scored(rate, -std::abs(std::log(std::stod(rate) / best)));
  };
}

TEST(RateSearch, GoesOnUntilTheBestHasAWorseNeighbourOnBothSides) {
  const std::vector<Tried> tried = searched(0.1, peak_at(1.7));
  EXPECT_THAT(values_in(tried), ElementsAre("0.032", "0.1", "0.32", "1", "3.2", "0.56", "1.8"));
  EXPECT_EQ(best_in(tried), "1.8");
}

TEST(RateSearch, TriesFiveRatesWhereTheUsualOneIsBest) {
  EXPECT_THAT(values_in(searched(0.001, peak_at(0.001))),
              ElementsAre("0.00032", "0.001", "0.0032", "0.00056", "0.0018"));
  EXPECT_EQ(std::ssize(searched(0.001, peak_at(0.001))), kFewestTried);
}

// The same rates wherever it begins, but for which of them are coarse.
TEST(RateSearch, BeginsAtTheRateOfTheLatticeThatIsNearest) {
  EXPECT_THAT(next_values({.option = "lr"}, 0.019, {}), ElementsAre("0.0056", "0.018", "0.056"));
  EXPECT_THAT(next_values({.option = "lr"}, 2, {}), ElementsAre("0.56", "1.8", "5.6"));
}

TEST(RateSearch, CountsALostNeighbourAsWorse) {
  const auto result = [](const std::string& rate) {
    return std::stod(rate) > 0.2 ? diverged(rate) : scored(rate, std::stod(rate));
  };
  const std::vector<Tried> tried = searched(0.1, result);
  EXPECT_THAT(values_in(tried), ElementsAre("0.032", "0.1", "0.32", "0.056", "0.18"));
  EXPECT_EQ(best_in(tried), "0.18");
}

TEST(RateSearch, GoesDownUntilSomethingTrains) {
  const auto result = [](const std::string& rate) {
    return std::stod(rate) > 2e-4 ? diverged(rate) : peak_at(1e-4)(rate);
  };
  const std::vector<Tried> tried = searched(0.1, result);
  EXPECT_EQ(best_in(tried), "0.0001");
  EXPECT_THAT(values_in(tried), AllOf(Contains("3.2e-05"), Not(Contains("1e-05")),
                                      Contains("5.6e-05"), Contains("0.00018")));
}

TEST(RateSearch, GivesUpWhereEveryRateDiverges) {
  const std::vector<Tried> tried = searched(0.1, diverged);
  EXPECT_EQ(tried.size(), kMostUntrained);
  EXPECT_EQ(tried.back().value, "1e-06");
  EXPECT_EQ(best_of(tried), std::nullopt);
}

// Which of the two it is nobody knows: too small a rate, or too large a one.
TEST(RateSearch, LooksOnBothSidesWhereNothingLearns) {
  const std::vector<Tried> unlearned = searched(0.1, [](const std::string& rate) {
    return Tried{.value = rate, .score = 10, .is_lost = true};
  });
  EXPECT_EQ(unlearned.size(), kMostUntrained);
  EXPECT_THAT(values_in(unlearned), AllOf(Contains("0.00032"), Contains("10")));
  const std::vector<Tried> equal =
      searched(0.1, [](const std::string& rate) { return scored(rate, -0.5); });
  EXPECT_EQ(values_in(equal), values_in(unlearned));
}

TEST(RateSearch, EndsWhereLargerIsAlwaysBetter) {
  const std::vector<Tried> tried =
      searched(0.1, [](const std::string& rate) { return scored(rate, std::stod(rate)); });
  EXPECT_EQ(tried.size(), kMostCoarse);
}

TEST(RateSearch, TakesTheMiddleOfEquals) {
  const auto result = [](const std::string& rate) {
    const double value = std::stod(rate);
    return scored(rate, value > 0.05 && value < 5 ? 100 : 50);
  };
  const std::vector<Tried> tried = searched(0.1, result);
  EXPECT_EQ(best_in(tried), "0.32");
}

TEST(GrowingList, GoesBeyondItsEndByItsOwnFactor) {
  const Tuning list = parse_tuning("lr=0.01,0.03,0.1");
  EXPECT_THAT(values_in(tried_with(list, 1, peak_at(0.7))),
              ElementsAre("0.01", "0.03", "0.1", "0.333", "1.11", "3.7"));
  EXPECT_THAT(values_in(tried_with(list, 1, peak_at(0.003))),
              ElementsAre("0.01", "0.03", "0.1", "0.00333", "0.00111"));
  EXPECT_EQ(tried_with(list, 1, peak_at(0.03)).size(), 3U);
  EXPECT_EQ(tried_with(list, 1, peak_at(1e6)).size(), 3 + kMostGrown);
}

TEST(GrowingList, IsNotOneThatIsClosedOrWhoseBestIsNotAlone) {
  EXPECT_EQ(tried_with(parse_tuning("lr=0.01,0.03,only"), 1, peak_at(1)).size(), 2U);
  const auto equal = [](const std::string& rate) { return scored(rate, 1); };
  EXPECT_EQ(tried_with(parse_tuning("lr=0.01,0.03"), 1, equal).size(), 2U);
  EXPECT_EQ(tried_with(parse_tuning("lr=0.01,0.03"), 1, diverged).size(), 2U);
}

TEST(GrowingList, IsOfPositiveNumbersWithoutALimit) {
  for (const char* list : {"momentum=0.5,0.9", "minibatch=16,32", "weight-decay=0,0.1",
                           "schedule=constant,cosine:total=5"}) {
    const Tuning tuning = parse_tuning(list);
    const auto last_is_best = [&](const std::string& value) {
      return scored(value, value == tuning.values.back() ? 1 : 0);
    };
    EXPECT_EQ(tried_with(tuning, 1, last_is_best).size(), 2U) << list;
  }
  EXPECT_EQ(tried_with(parse_tuning("weight-decay=0.01,0.1"), 1, peak_at(1)).size(), 4U);
}

// A quadratic whose best rate is known: with the eigenvalues h and the variance c h / B of the
// gradient, the second moments of a parameter and its velocity follow a recursion.
class PlantedQuadratic {
 public:
  explicit PlantedQuadratic(double momentum) : momentum_(momentum) {}

  // The final losses of two runs.
  [[nodiscard]] Tried trained(const std::string& rate) {
    const auto [found, is_new] = trained_.try_emplace(rate, diverged(rate));
    if (!is_new) return found->second;
    double loss = 0;
    for (const std::uint64_t seed : {1U, 2U}) {
      RunConfiguration run;
      run.model = fmt::format("quadratic:dim={},condition={},noise={},samples={}", kDim, kCondition,
                              kNoise, kBatch * kSteps);
      run.trace = fmt::to_string(kBatch);
      run.minibatch = 16;
      run.rule = "constant";
      run.learning_rate = std::stod(rate);
      run.momentum = momentum_;
      run.epochs = 1;
      run.seed = seed;
      const RunOutcome outcome = test::outcome_of(run);
      if (outcome.end == RunEnd::diverged) return found->second;
      loss += outcome.summary->result.final_test->loss / 2;
    }
    if (std::isfinite(loss)) found->second = scored(rate, -loss);
    return found->second;
  }

  [[nodiscard]] double best() const {
    double best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (int i = -120; i <= 20; ++i) {
      const double rate = std::pow(10, i / 40.);
      const double loss = expected_loss(rate);
      if (loss < least) std::tie(best, least) = std::pair(rate, loss);
    }
    return best;
  }

 private:
  static constexpr int kDim = 200;
  static constexpr int kCondition = 20;
  static constexpr int kNoise = 30;
  static constexpr int kBatch = 64;
  static constexpr int kSteps = 128;

  [[nodiscard]] double expected_loss(double rate) const {
    double loss = 0;
    for (const double h : eigenvalues_of({.dim = kDim, .condition = kCondition})) {
      double xx = 1;
      double xv = 0;
      double vv = 0;
      for (int step = 0; step < kSteps; ++step) {
        vv = momentum_ * momentum_ * vv + 2 * momentum_ * h * xv + h * h * xx + kNoise * h / kBatch;
        xv = momentum_ * xv + h * xx;
        xx += rate * (rate * vv - 2 * xv);
        xv -= rate * vv;
      }
      loss += h * xx / 2;
    }
    return loss;
  }

  double momentum_;
  std::map<std::string, Tried> trained_;
};

TEST(RateSearch, FindsTheBestRateOfAQuadraticWhereverItBegins) {
  for (const double momentum : {0.0, 0.9}) {
    PlantedQuadratic quadratic(momentum);
    const double best = quadratic.best();
    for (const double start : {1e-6, 1e-4, 0.003, 0.1, 1.0, 10.0}) {
      const std::vector<Tried> tried =
          searched(start, [&](const std::string& rate) { return quadratic.trained(rate); });
      const double found = std::stod(best_in(tried));
      EXPECT_LT(std::abs(std::log(found / best)), std::log(1.8))
          << found << " for " << best << " from " << start << " with momentum " << momentum;
    }
  }
}

}  // namespace
}  // namespace rubato
