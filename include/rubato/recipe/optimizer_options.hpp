#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/core/choice.hpp>
#include <rubato/scaling/rule.hpp>

namespace rubato {

struct Strategy;  // core/family.hpp

enum class OptimizerKind { sgd, lars, adam, adamw, rmsprop, adagrad };

inline constexpr std::array<Choice<OptimizerKind>, 6> kOptimizers{
    {{OptimizerKind::sgd, "sgd"},
     {OptimizerKind::lars, "lars"},
     {OptimizerKind::adam, "adam"},
     {OptimizerKind::adamw, "adamw"},
     {OptimizerKind::rmsprop, "rmsprop"},
     {OptimizerKind::adagrad, "adagrad"}}};

inline constexpr std::array<Choice<MomentumForm>, 2> kMomentumForms{
    {{MomentumForm::pytorch, "pytorch"}, {MomentumForm::mxnet, "mxnet"}}};

/// Which optimizer makes the shared update, and with what. The names and the defaults are
/// torch.optim's; the learning rate is not among them, as schedule and rule set it at every step.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::sgd;
  /// Of SGD, LARS and RMSprop, in [0, 1).
  double momentum = 0;
  /// Of all kinds, at least 0: the L2 penalty, for AdamW the decoupled one.
  double weight_decay = 0;
  /// Of SGD.
  bool nesterov = false;
  /// Of SGD and LARS: where the rate enters momentum. By default the rule's own, where it has one
  /// (Rule::momentum_form()), else PyTorch's for SGD, and the paper's, which is MXNet's, for LARS.
  std::optional<MomentumForm> momentum_form{};
  /// Of LARS: the trust coefficient, above 0.
  double trust = 0.001;
  /// Of Adam and AdamW, both in [0, 1).
  double beta1 = 0.9;
  double beta2 = 0.999;
  bool amsgrad = false;
  /// Of RMSprop: the smoothing of the squares, in [0, 1).
  double alpha = 0.99;
  bool centered = false;
  /// Of Adagrad, both at least 0.
  double lr_decay = 0;
  double initial_accumulator = 0;
  /// Of Adam, AdamW, RMSprop and Adagrad, at least 0.
  double epsilon = 1e-8;

  friend bool operator==(const OptimizerOptions&, const OptimizerOptions&) = default;
};

/// The optimizer that `spec` asks for (core/spec.hpp), with the weight decay, momentum and Nesterov
/// form of `defaults`; optimizers() has the arguments.
///
/// Throws Error for an unknown name, with the nearest, and for arguments that it does not take.
[[nodiscard]] OptimizerOptions parse_optimizer(std::string_view spec,
                                               const OptimizerOptions& defaults);
/// All of them, with the arguments' own defaults.
[[nodiscard]] std::vector<Strategy> optimizers();

/// Whether the kind has a momentum that can be chosen.
[[nodiscard]] bool has_momentum(OptimizerKind kind);

/// Throws Error for an option that is out of its range, or that does not go with the others.
void require_valid(const OptimizerOptions& options);

/// When the slow weights of Lookahead are set to the fast ones.
enum class LookaheadStart {
  /// Before the first update, as in the paper.
  before_first_update,
  /// After the first update, as some implementations have it.
  after_first_update,
};

inline constexpr std::array<Choice<LookaheadStart>, 2> kLookaheadStarts{
    {{LookaheadStart::before_first_update, "before"},
     {LookaheadStart::after_first_update, "after"}}};

struct LookaheadOptions {
  /// Updates between two meetings, at least 1.
  std::int64_t k = 5;
  /// How far the slow weights go to the fast ones when they meet, in (0, 1].
  double alpha = 0.5;
  LookaheadStart start = LookaheadStart::before_first_update;

  friend bool operator==(const LookaheadOptions&, const LookaheadOptions&) = default;
};

}  // namespace rubato
