#pragma once

#include <cstdint>

#include <rubato/base/parse.hpp>

namespace rubato {

/// The options of a LossScaler. The defaults are those of torch.cuda.amp.GradScaler, but for the
/// smallest scale, which is fairseq's.
struct LossScaleOptions {
  /// The first scale, above 0.
  double initial = 65536;
  /// On the scale after `interval` steps in a row that did not overflow, at least 1.
  double growth = 2;
  /// On the scale after a step that did, above 0 and below 1.
  double backoff = 0.5;
  /// At least 1.
  std::int64_t interval = 2000;
  /// Training has diverged when the scale falls below it; above 0 and at most `initial`.
  double smallest = 1e-4;

  friend bool operator==(const LossScaleOptions&, const LossScaleOptions&) = default;
};

/// Throws Error for an option out of its range.
void require_valid(const LossScaleOptions& options);

/// Dynamic loss scaling (Micikevicius et al. 2018, "Mixed precision training", section 3.2): a loss
/// is multiplied by a scale before backward, so that small gradients are not rounded to 0 in half
/// precision, and gradients are divided by it after. A step whose gradient overflows is skipped and
/// the scale reduced; it grows after many that do not.
class LossScaler {
 public:
  /// Throws Error for an option out of its range.
  explicit LossScaler(const LossScaleOptions& options = {});

  /// Of the next step.
  [[nodiscard]] double scale() const { return scale_; }
  /// After a step, and whether its gradient was finite.
  void update(bool finite);
  /// Whether the scale has fallen below the smallest.
  [[nodiscard]] bool exhausted() const { return scale_ < options_.smallest; }

  void visit_state(NumberVisitor& numbers);

 private:
  LossScaleOptions options_;
  double scale_;
  // Steps in a row that did not overflow, since the scale last changed.
  std::int64_t good_steps_ = 0;
};

}  // namespace rubato
