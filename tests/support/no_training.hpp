#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rubato/base/error.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/loop/trainer.hpp>

namespace rubato::test {

/// For observers that look at nothing but the record; derived from, it has what they look at, too.
class NoTraining : public Training {
 public:
  void stop(std::string) override { none(); }
  void pause() override { none(); }
  void set_learning_rate(double) override { none(); }
  [[nodiscard]] const TrainOptions& options() const override { none(); }
  [[nodiscard]] const TrainResult& result() const override { none(); }
  [[nodiscard]] const std::vector<NamedArray>& parameters() const override { none(); }
  [[nodiscard]] const std::vector<NamedArray>& buffers() const override { none(); }
  [[nodiscard]] Objective& objective() const override { none(); }
  [[nodiscard]] Workers& workers() const override { none(); }
  [[nodiscard]] State state() const override { none(); }

 private:
  [[noreturn]] static void none() { throw Error("there is no training"); }
};

inline NoTraining no_training;

/// With minibatches of so many samples.
class MinibatchesOf final : public NoTraining {
 public:
  explicit MinibatchesOf(std::int64_t samples) : options_{.minibatch_size = samples} {}
  [[nodiscard]] const TrainOptions& options() const override { return options_; }

 private:
  TrainOptions options_;
};

}  // namespace rubato::test
