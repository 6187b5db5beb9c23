#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/workers.hpp>

#include "base/core/portable_math.hpp"

namespace rubato {

/// An exponential moving average of the weights (TrainOptions::ema_half_life), or nothing if there
/// is no half-life.
///
/// It begins with the weights before its first update, and not with those after it: the share of
/// its beginning then halves with every half-life of samples, whatever their batches.
///
/// T is float or double.
template <class T>
class WeightAverages {
 public:
  explicit WeightAverages(std::optional<double> half_life) : half_life_(half_life) {}

  /// The averages, as many as there are weights; empty before the first update.
  [[nodiscard]] std::span<T> values() { return values_; }

  /// Called before each update.
  void begin(std::span<const T> weights) {
    if (half_life_ && values_.empty()) values_.assign(weights.begin(), weights.end());
  }
  /// Called after an update with a batch of that size. In this form, rounding cannot move the
  /// average away from weights that stay the same. Throws Error if a state was that of another
  /// model.
  void move(std::span<const T> weights, std::int64_t batch_size, Workers& workers) {
    if (!half_life_) return;
    if (values_.size() != weights.size()) {
      throw Error("the averaged weights are those of another model");
    }
    const double half_lives = static_cast<double>(batch_size) / *half_life_;
    const auto share = static_cast<T>(1 - exact::pow(0.5, half_lives));
    workers.for_each_range(values_.size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) values_[i] += share * (weights[i] - values_[i]);
    });
  }

  void visit_state(StateVisitor& state) {
    const std::string name = "ema.weights";
    // In a fork that adds averages, they begin with the next update.
    if (!half_life_ || (state.forks() && !state.has(name, true))) return;
    state.list(name, values_);
  }

 private:
  std::optional<double> half_life_;
  std::vector<T> values_;
};

}  // namespace rubato
