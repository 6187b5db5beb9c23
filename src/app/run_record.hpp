#pragma once

#include <string>

#include <rubato/core/stopwatch.hpp>
#include <rubato/train/observer.hpp>

#include "app/train_options.hpp"

namespace rubato::app {

/// What a checkpoint says of the run beyond its training: the options it was made with, and for how
/// long it has been trained.
class RunRecord final : public Observer {
 public:
  /// `config` is to_config() of the run's options.
  explicit RunRecord(std::string config) : config_(std::move(config)) {}

  void save(State& state) const override;
  void load(const Training& training, const State& state) override;

  /// Of this process and those before it.
  [[nodiscard]] double wall_seconds() const { return seconds_before_ + since_.seconds(); }

 private:
  std::string config_;
  double seconds_before_ = 0;
  Stopwatch since_;
};

/// Throws Error when the checkpoint was made with options that decide the result and are not those
/// of `config`: says which, and what may be changed. Data and trace are compared by content, when
/// they are there.
void require_same_options(const State& checkpoint, const std::string& config);
/// The same where there is no checkpoint, but the run's own configuration. Data and trace have to
/// be those that it names.
void require_same_options(const std::string& before, const std::string& config);

}  // namespace rubato::app
