#pragma once

#include <cstdint>

#include <rubato/base/parse.hpp>

namespace rubato {

/// The options of a LossScaler. The defaults are those of torch.cuda.amp.GradScaler, except for the
/// smallest scale, which is fairseq's.
struct LossScaleOptions {
  /// The first scale, above 0.
  double initial = 65536;
  /// The factor on the scale after `interval` steps in a row without overflow, at least 1.
  double growth = 2;
  /// The factor on the scale after a step that overflowed, above 0 and below 1.
  double backoff = 0.5;
  /// Steps in a row without overflow before the scale grows, at least 1.
  std::int64_t interval = 2000;
  /// Training has diverged if the scale falls below this; above 0 and at most `initial`.
  double smallest = 1e-4;

  friend bool operator==(const LossScaleOptions&, const LossScaleOptions&) = default;
};

/// Throws Error for an option out of its range.
void require_valid(const LossScaleOptions& options);

/// Dynamic loss scaling (Micikevicius et al. 2018, "Mixed precision training", section 3.2): the
/// loss is multiplied by a scale before the backward pass, so that small gradients are not rounded
/// to 0 in half precision, and gradients are divided by it afterwards. A step whose gradient
/// overflows is skipped and the scale reduced; the scale grows after many steps without overflow.
class LossScaler {
 public:
  /// Throws Error for an option out of its range.
  explicit LossScaler(const LossScaleOptions& options = {});

  /// The scale of the next step.
  [[nodiscard]] double scale() const { return scale_; }
  /// Updates the scale after a step; `finite` says if its gradient was.
  void update(bool finite);
  /// True if the scale has fallen below the smallest.
  [[nodiscard]] bool exhausted() const { return scale_ < options_.smallest; }

  void visit_state(NumberVisitor& numbers);

 private:
  LossScaleOptions options_;
  double scale_;
  // Steps in a row without overflow since the scale last changed.
  std::int64_t good_steps_ = 0;
};

}  // namespace rubato
