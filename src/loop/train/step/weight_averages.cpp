// An exponential moving average of the weights (TrainOptions::ema_half_life).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/workers.hpp>

#include "base/core/portable_math.hpp"
#include "base/core/throw_error.hpp"
#include "step_part.hpp"

namespace rubato {

namespace {

// It begins with the weights before its first update, and not with those after it: the share of its
// beginning then halves with every half-life of samples, whatever their batches.
template <class T>
class WeightAverages final : public OtherWeights<T> {
 public:
  explicit WeightAverages(double half_life) : half_life_(half_life) {}

  [[nodiscard]] std::span<T> values() override { return values_; }
  void begin(std::span<const T> parameters) override {
    if (values_.empty()) values_.assign(parameters.begin(), parameters.end());
  }
  // In this form, rounding cannot move the average away from weights that stay the same.
  void move(std::span<const T> parameters, std::int64_t batch_size, Workers& workers) override {
    if (values_.size() != parameters.size()) {
      throw Error("the averaged weights are those of another model");
    }
    const double half_lives = static_cast<double>(batch_size) / half_life_;
    const auto share = static_cast<T>(1 - exact::pow(0.5, half_lives));
    workers.for_each_range(values_.size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) values_[i] += share * (parameters[i] - values_[i]);
    });
  }
  void visit_state(StateVisitor& state) override {
    const std::string name = "ema.weights";
    // In a fork that adds averages, they begin with the next update.
    if (state.forks() && !state.has(name, true)) return;
    state.list(name, values_);
  }

 private:
  double half_life_;
  std::vector<T> values_;
};

template <class T>
std::unique_ptr<OtherWeights<T>> make_averages(const TrainOptions& options) {
  return std::make_unique<WeightAverages<T>>(*options.ema_half_life);
}

}  // namespace

StepPart averages_part() {
  return {
      .prefix = "ema.",
      .bound = [](const TrainOptions& options) -> std::vector<BoundValue> {
        const std::optional<double>& half_life = options.ema_half_life;
        return {{"ema_half_life", half_life ? fmt::to_string(*half_life) : "", OnFork::free}};
      },
      .needs = [](const TrainOptions& options) -> PartNeeds {
        if (!options.ema_half_life) return {};
        return {.remembered = 1, .tests_others = true};
      },
      .check =
          [](const TrainOptions& options) {
            if (!options.ema_half_life || *options.ema_half_life > 0) return;
            throw_error(
                "averaged weights with a half-life of {} samples: accepted are values above 0",
                *options.ema_half_life);
          },
      .weights = {.name = "ema",
                  .words = "averaged weights",
                  .label = "EMA",
                  .missing = "no weights are averaged",
                  .exist =
                      [](const TrainOptions& options) { return options.ema_half_life.has_value(); },
                  .make = {make_averages<float>, make_averages<double>}}};
}

}  // namespace rubato
