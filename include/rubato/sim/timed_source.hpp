#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <rubato/plan/step_source.hpp>
#include <rubato/sim/cluster_model.hpp>

namespace rubato {

/// The steps of another source, which knows no time, in modelled time: each lasts as long as the
/// cluster's model says, and the next begins where it ends. All cores of a step stay to its end.
class TimedSource final : public StepSource {
 public:
  struct Options {
    ClusterModel cluster{};
    /// Samples in a minibatch, at least 1.
    std::int64_t minibatch_size = 32;
    /// At the steps for which the source does not say, at least 1.
    std::int64_t cores = 1;
  };

  /// Throws Error for null, for a source with a clock of its own, and for options out of their
  /// range.
  TimedSource(std::unique_ptr<StepSource> source, Options options);

  [[nodiscard]] std::optional<TraceStep> next(const SourceProgress& progress) const override;
  void taken(const TraceStep& step, const SourceProgress& after) override;
  [[nodiscard]] bool has_clock() const override { return true; }
  [[nodiscard]] std::optional<ClockTime> time_after(const SourceProgress& progress) const override;

  [[nodiscard]] std::int64_t max_batch() const override { return source_->max_batch(); }
  [[nodiscard]] bool needs_noise_scale() const override { return source_->needs_noise_scale(); }
  [[nodiscard]] const Trace* trace() const override { return source_->trace(); }
  [[nodiscard]] std::string where(StepIndex step) const override { return source_->where(step); }
  void save(State& state, std::int64_t steps) const override;
  void load(const State& state, std::int64_t steps) override;

 private:
  // What the clock shows when such a step has been taken from now on.
  [[nodiscard]] ClockTime after(const TraceStep& step) const;
  [[nodiscard]] std::string binding() const;

  std::unique_ptr<StepSource> source_;
  Options options_;
  // It remembers what it has computed.
  mutable StepTimes times_;
  ClockTime time_;
  std::int64_t steps_ = 0;
};

}  // namespace rubato
