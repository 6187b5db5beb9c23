// This file has Lookahead, SGD with LARS, and the choice among all optimizers. Two forms of
// momentum with and without LARS share one class and one kernel, tree_sum_sgd() with a single leaf:
// LARS multiplies the rate of each tensor by one of its own, and MXNet's form moves the rate into
// the gradient's factor, its bound and the weight decay. Lookahead wraps any optimizer; its slow
// weights are empty until the first update, which sets them before or after itself. Options are
// checked by require_valid() (optimizer_options.cpp) before anything is made.

#include "make_optimizer.hpp"

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>
#include <rubato/numbers/sums.hpp>

#include "base/core/throw_error.hpp"
#include "numbers/collective/tree_sum.hpp"
#include "ranges.hpp"

namespace rubato {

template <class T>
Lookahead<T>::Lookahead(std::unique_ptr<FlatOptimizer<T>> fast, const LookaheadOptions& options,
                        ParameterLayout layout, bool in_samples)
    : fast_(std::move(fast)),
      options_(options),
      layout_(std::move(layout)),
      in_samples_(in_samples) {
  if (options.k < 1) throw_error("Lookahead's k {}: at least 1 is needed", options.k);
  if (!(options.alpha > 0 && options.alpha <= 1)) {
    throw_error("Lookahead's alpha {}: accepted are values above 0 and up to 1", options.alpha);
  }
}

template <class T>
void Lookahead<T>::step(const Update<T>& update, Workers& workers) {
  const bool first = slow_.empty();
  if (!first && slow_.size() != update.parameters.size()) {
    throw Error("Lookahead's slow weights are those of another model");
  }
  if (first && options_.start == LookaheadStart::before_first_update) {
    slow_.assign(update.parameters.begin(), update.parameters.end());
  }
  fast_->step(update, workers);
  if (first && options_.start == LookaheadStart::after_first_update) {
    slow_.assign(update.parameters.begin(), update.parameters.end());
    return;
  }
  if (is_due(update)) meet(update, workers);
}

template <class T>
bool Lookahead<T>::is_due(const Update<T>& update) {
  ++updates_;
  if (!in_samples_) return updates_ % options_.k == 0;
  samples_ += update.batch_size;
  // Batches of many samples cannot make the division inexact, as a product could overflow.
  if (samples_ / update.reference_batch_size < options_.k) return false;
  samples_ = 0;
  return true;
}

template <class T>
void Lookahead<T>::meet(const Update<T>& update, Workers& workers) {
  const auto alpha = static_cast<T>(options_.alpha);
  const auto meet_in = [&](std::size_t first, std::size_t last) {
    workers.for_each_range(last - first, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = first + begin; i < first + end; ++i) {
        slow_[i] += alpha * (update.parameters[i] - slow_[i]);
        update.parameters[i] = slow_[i];
      }
    });
  };
  if (update.unreached.empty()) return meet_in(0, slow_.size());
  for_each_layer(layout_.layers(), update.unreached, [&](std::size_t layer, bool reached) {
    if (reached) meet_in(layer == 0 ? 0 : layout_.layer_ends[layer - 1], layout_.layer_ends[layer]);
  });
}

template <class T>
void Lookahead<T>::visit_state(StateVisitor& state) {
  fast_->visit_state(state);
  // In a fork that adds Lookahead, the slow weights begin with the next update.
  if (state.forks() && !state.has("lookahead.slow", true)) return;
  state.list("lookahead.slow", slow_);
  state.count("lookahead.updates", updates_);
  if (in_samples_ && state.has("lookahead.samples", true)) {
    state.count("lookahead.samples", samples_);
  }
}

template class Lookahead<float>;
template class Lookahead<double>;

namespace {

// Returns the coefficients of a tensor. In MXNet's form the velocity contains the rate, so the step
// itself has none.
template <class T>
SgdCoefficients<T> coefficients_of(const LayerRates& layer, const Update<T>& update,
                                   MomentumForm form, bool nesterov) {
  const auto momentum = static_cast<T>(layer.momentum);
  if (form == MomentumForm::pytorch) {
    return {.gradient_factor = update.gradient_factor,
            .learning_rate = static_cast<T>(layer.rate),
            .momentum = momentum,
            .weight_decay = static_cast<T>(layer.weight_decay),
            .nesterov = nesterov,
            .clip = update.clip};
  }
  // An infinite bound must stay infinite, although the rate may be 0.
  const bool bounded = std::isfinite(update.clip);
  return {
      .gradient_factor = static_cast<T>(layer.rate * static_cast<double>(update.gradient_factor)),
      .learning_rate = T{1},
      .momentum = momentum,
      .weight_decay = static_cast<T>(layer.rate * layer.weight_decay),
      .nesterov = nesterov,
      .clip =
          bounded ? static_cast<T>(layer.rate * static_cast<double>(update.clip)) : update.clip};
}

// The norms are those of a sum of `summed` gradients; the paper's are those of a mean.
double local_rate(const ParameterNorms& norms, double weight_decay, double trust, double summed) {
  const double weight = std::sqrt(norms.weight_square);
  const double gradient = std::sqrt(norms.gradient_square);
  if (weight == 0 || gradient == 0) return 1;
  return trust * summed * weight / (gradient + weight_decay * weight);
}

// SGD and LARS, in one pass over memory, divided among all threads. Coefficients are rounded to T
// once.
template <class T>
class Sgd final : public FlatOptimizer<T> {
 public:
  Sgd(const OptimizerOptions& options, const ParameterLayout& layout,
      std::vector<GroupOptions> groups)
      : sgd_(method_options<SgdOptions>(options.method)),
        ranges_(layout, std::move(groups), options.weight_decay, options.momentum),
        velocity_(ranges_.any_momentum() ? ranges_.size() : 0) {
    if (const auto* lars = std::get_if<LarsOptions>(&options.method)) lars_ = *lars;
  }

  void step(const Update<T>& update, Workers& workers) override {
    if (lars_ && update.layers.size() != ranges_.layers()) {
      throw_error(
          "LARS needs the norms of {} tensors and has those of {}; accepted: one of Update::layers "
          "for each",
          ranges_.layers(), update.layers.size());
    }
    const auto ranges =
        ranges_.of_step(update, [&](LayerRates layer) { return coefficients(update, layer); });
    const std::span<T> velocity(velocity_);
    if (const auto& factor = update.rates.optimizer.mean_factor) {
      multiply(velocity, static_cast<T>(*factor), workers);
    }
    workers.for_each_range(update.parameters.size(), [&](std::size_t begin, std::size_t end) {
      const T* const gradient = update.gradient_sum.data();
      tree_sum_sgd({&gradient, 1}, begin, update.parameters.subspan(begin, end - begin),
                   velocity.empty() ? velocity : velocity.subspan(begin, end - begin), ranges);
    });
  }

  // The velocity is empty without momentum.
  void visit_state(StateVisitor& state) override {
    state.values("optimizer.velocity", std::span<T>(velocity_));
  }
  [[nodiscard]] bool needs_parameter_norms() const override { return lars_.has_value(); }
  [[nodiscard]] OptimizerNumbers numbers() const override {
    OptimizerNumbers numbers = ranges_.numbers();
    numbers.momentum_form = form();
    return numbers;
  }

 private:
  [[nodiscard]] MomentumForm form() const {
    if (lars_) return lars_->momentum_form.value_or(MomentumForm::mxnet);
    return sgd_.momentum_form.value_or(MomentumForm::pytorch);
  }
  SgdCoefficients<T> coefficients(const Update<T>& update, LayerRates layer) const {
    if (!lars_) {
      // Without momentum both forms are the same.
      return coefficients_of(layer, update, layer.momentum == 0 ? MomentumForm::pytorch : form(),
                             sgd_.nesterov);
    }
    if (layer.layer_wise) {
      layer.rate *=
          local_rate(update.layers[layer.index], layer.weight_decay, lars_->trust, update.summed);
    }
    return coefficients_of(layer, update, form(), /*nesterov=*/false);
  }

  SgdOptions sgd_;
  std::optional<LarsOptions> lars_;
  LayerRanges<SgdCoefficients<T>> ranges_;
  std::vector<T> velocity_;
};

}  // namespace

template <class T>
std::unique_ptr<FlatOptimizer<T>> make_optimizer(const OptimizerOptions& options,
                                                 const ParameterLayout& layout,
                                                 std::vector<GroupOptions> groups) {
  require_valid(options, groups);
  if (is_sgd_or_lars(options.method)) {
    return std::make_unique<Sgd<T>>(options, layout, std::move(groups));
  }
  if (std::holds_alternative<MuonOptions>(options.method)) {
    return make_muon<T>(options, layout, std::move(groups));
  }
  return make_adaptive<T>(options, layout, std::move(groups));
}

std::string memory_kind(const OptimizerOptions& options) {
  struct Further {
    std::string operator()(const SgdOptions& sgd) const { return of_form(sgd.momentum_form); }
    std::string operator()(const LarsOptions& lars) const { return of_form(lars.momentum_form); }
    std::string operator()(const AdamOptions& adam) const { return adam.amsgrad ? "amsgrad" : ""; }
    std::string operator()(const RmspropOptions& rmsprop) const {
      return rmsprop.centered ? "centered" : "";
    }
    std::string operator()(const AdagradOptions& /*adagrad*/) const { return {}; }
    // They decide which tensors are matrices.
    std::string operator()(const MuonOptions& muon) const { return "adamw=" + muon.adamw; }

    static std::string of_form(const std::optional<MomentumForm>& form) {
      return form ? fmt::format("form={}", choice_name(kMomentumForms, *form)) : "";
    }
  };
  // AdamW is Adam with another weight decay.
  const std::string_view name =
      std::holds_alternative<AdamOptions>(options.method) ? "adam" : optimizer_name(options.method);
  return fmt::format("{}{} {}", name, options.momentum == 0 ? "" : " momentum",
                     std::visit(Further(), options.method));
}

int remembered_values(const OptimizerOptions& options, const std::vector<GroupOptions>& groups) {
  if (std::holds_alternative<MuonOptions>(options.method)) return 2;
  if (!is_sgd_or_lars(options.method)) return adaptive_values(options, groups);
  return any_momentum(options.momentum, groups) ? 1 : 0;
}

template std::unique_ptr<FlatOptimizer<float>> make_optimizer<float>(const OptimizerOptions&,
                                                                     const ParameterLayout&,
                                                                     std::vector<GroupOptions>);
template std::unique_ptr<FlatOptimizer<double>> make_optimizer<double>(const OptimizerOptions&,
                                                                       const ParameterLayout&,
                                                                       std::vector<GroupOptions>);

}  // namespace rubato
