// SGD and LARS. Two forms of momentum with and without LARS share one class and one kernel,
// tree_sum_sgd() with a single leaf: LARS multiplies the rate of each tensor by one of its own, and
// MXNet's form moves the rate into the gradient's factor, its bound and the weight decay.

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/base/state.hpp>
#include <rubato/numbers/sums.hpp>

#include "base/core/throw_error.hpp"
#include "numbers/collective/tree_sum.hpp"
#include "optimizer_row.hpp"
#include "ranges.hpp"

namespace rubato {

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

// The momentum of runs that choose none.
constexpr double kUsualMomentum = 0.5;

void read_form(Spec& spec, std::string_view unset, std::optional<MomentumForm>& form) {
  if (const auto given = spec.choice("form", Unset{unset}, kMomentumForms)) form = given;
}

// The facts that SGD and LARS share: both remember a velocity alone, whose values depend on the
// form.
MethodFacts facts_with(const std::optional<MomentumForm>& form) {
  const std::string name(form ? choice_name(kMomentumForms, *form) : "");
  return {.usual_momentum = kUsualMomentum,
          .momentum_form = form,
          .follows_sums = true,
          .memory = form ? "form=" + name : "",
          .bound = {{"form", name}}};
}

}  // namespace

OptimizerRow sgd_row() {
  return row_of_method<SgdOptions, Sgd>(
      {.name = "sgd",
       .help = "with --momentum and --nesterov; form says where the rate enters momentum",
       .read =
           [](Spec& spec, OptimizerMethod& method) {
             read_form(spec, "the rule's or pytorch", std::get<SgdOptions>(method).momentum_form);
           },
       .set_nesterov =
           [](OptimizerMethod& method) { std::get<SgdOptions>(method).nesterov = true; },
       .check =
           [](const OptimizerOptions& options) {
             if (std::get<SgdOptions>(options.method).nesterov && options.momentum == 0) {
               throw Refused("nesterov", "there is no momentum", "a momentum above 0");
             }
           },
       .facts =
           [](const OptimizerMethod& method) {
             const auto& sgd = std::get<SgdOptions>(method);
             MethodFacts facts = facts_with(sgd.momentum_form);
             facts.bound.emplace_back("nesterov", fmt::to_string(sgd.nesterov));
             return facts;
           }});
}

OptimizerRow lars_row() {
  return row_of_method<LarsOptions, Sgd>(
      {.name = "lars",
       .help = "a rate for each layer, with --momentum (You et al. 2017); form as for sgd",
       .numbers = [](OptimizerMethod& method) -> std::vector<MethodNumber> {
         return {{"trust", "trust coefficient", &std::get<LarsOptions>(method).trust, kPositive}};
       },
       .read =
           [](Spec& spec, OptimizerMethod& method) {
             read_form(spec, "the rule's or mxnet", std::get<LarsOptions>(method).momentum_form);
           },
       .facts =
           [](const OptimizerMethod& method) {
             const auto& lars = std::get<LarsOptions>(method);
             MethodFacts facts = facts_with(lars.momentum_form);
             // The paper's rate for AlexNet at a batch of 512.
             facts.usual_rate = 2;
             facts.layer_wise = true;
             facts.bound.emplace_back("trust", fmt::to_string(lars.trust));
             return facts;
           }});
}

}  // namespace rubato
