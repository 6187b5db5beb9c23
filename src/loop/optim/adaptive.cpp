// RMSprop and Adagrad: one pass over memory, divided among all threads. Each method is a kernel,
// which says what it remembers of each parameter and how it updates one range.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/spec.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/optimizer.hpp>

#include "base/machine/instruction_set.hpp"
#include "optimizer_row.hpp"
#include "ranges.hpp"

namespace rubato {

namespace {

constexpr std::size_t kMostAccumulators = 3;

// An array with a value for each parameter that an optimizer remembers from step to step.
struct Accumulator {
  std::string_view name;
  bool is_used = true;
  double initial = 0;
};

// A piece of the parameters, with the same piece of all accumulators, in the order of
// accumulators(); null for arrays that are not used.
template <class T>
struct Piece {
  T* parameters = nullptr;
  std::array<T*, kMostAccumulators> accumulators{};
  const T* gradient_sum = nullptr;
  std::size_t size = 0;
};

template <class T>
struct Rmsprop {
  using Options = RmspropOptions;
  // It is the last of accumulators().
  static constexpr bool kHasVelocity = true;
  // It does not count its steps.
  static constexpr std::string_view kSteps{};

  static std::array<Accumulator, 3> accumulators(const Options& options, bool any_momentum) {
    return {{{.name = "optimizer.rmsprop.square"},
             {.name = "optimizer.rmsprop.mean", .is_used = options.centered},
             {.name = "optimizer.rmsprop.velocity", .is_used = any_momentum}}};
  }

  struct Coefficients {
    GradientCoefficients<T> gradient;
    T alpha = 0;
    // 1 - alpha.
    T rest = 1;
    T epsilon = 0;
    T momentum = 0;
    T learning_rate = 0;

    friend bool operator==(const Coefficients&, const Coefficients&) = default;
  };

  static Coefficients coefficients(const Options& options, std::int64_t /*step*/,
                                   const LayerRates& layer,
                                   const GradientCoefficients<T>& gradient) {
    return {.gradient = gradient,
            .alpha = static_cast<T>(options.alpha),
            .rest = static_cast<T>(1 - options.alpha),
            .epsilon = static_cast<T>(options.epsilon),
            .momentum = static_cast<T>(layer.momentum),
            .learning_rate = static_cast<T>(layer.rate)};
  }

  template <bool Centered, bool Momentum>
  [[gnu::always_inline]] static void loop(T* __restrict parameters, T* __restrict square,
                                          T* __restrict mean, T* __restrict velocity,
                                          const T* __restrict gradient_sum, std::size_t n,
                                          Coefficients c) {
    for (std::size_t i = 0; i < n; ++i) {
      const T g = applied_gradient(gradient_sum[i], parameters[i], c.gradient);
      const T s = c.alpha * square[i] + c.rest * g * g;
      square[i] = s;
      T variance = s;
      if constexpr (Centered) {
        const T a = c.alpha * mean[i] + c.rest * g;
        mean[i] = a;
        variance = s - a * a;
        variance = variance < T{0} ? T{0} : variance;
      }
      const T divisor = std::sqrt(variance) + c.epsilon;
      if constexpr (Momentum) {
        const T b = c.momentum * velocity[i] + quotient(g, divisor);
        velocity[i] = b;
        parameters[i] -= c.learning_rate * b;
      } else {
        parameters[i] -= quotient(c.learning_rate * g, divisor);
      }
    }
  }

  template <bool Centered>
  [[gnu::always_inline]] static void update_if(const Piece<T>& at, const Coefficients& c) {
    const auto [square, mean, velocity] = at.accumulators;
    if (c.momentum == T{0}) {
      loop<Centered, false>(at.parameters, square, mean, velocity, at.gradient_sum, at.size, c);
    } else {
      loop<Centered, true>(at.parameters, square, mean, velocity, at.gradient_sum, at.size, c);
    }
  }

  [[gnu::always_inline]] static void update(const Piece<T>& at, const Coefficients& c) {
    const bool centered = at.accumulators[1] != nullptr;
    if (centered) {
      update_if<true>(at, c);
    } else {
      update_if<false>(at, c);
    }
  }
};

template <class T>
struct Adagrad {
  using Options = AdagradOptions;
  static constexpr bool kHasVelocity = false;
  static constexpr std::string_view kSteps = "optimizer.adagrad.steps";

  static std::array<Accumulator, 1> accumulators(const Options& options, bool /*any_momentum*/) {
    return {{{.name = "optimizer.adagrad.square_sum", .initial = options.initial_accumulator}}};
  }

  struct Coefficients {
    GradientCoefficients<T> gradient;
    T epsilon = 0;
    T step_size = 0;

    friend bool operator==(const Coefficients&, const Coefficients&) = default;
  };

  static Coefficients coefficients(const Options& options, std::int64_t step,
                                   const LayerRates& layer,
                                   const GradientCoefficients<T>& gradient) {
    const double fallen = 1 + static_cast<double>(step - 1) * options.lr_decay;
    return {.gradient = gradient,
            .epsilon = static_cast<T>(options.epsilon),
            .step_size = static_cast<T>(layer.rate / fallen)};
  }

  [[gnu::always_inline]] static void loop(T* __restrict parameters, T* __restrict square_sum,
                                          const T* __restrict gradient_sum, std::size_t n,
                                          Coefficients c) {
    for (std::size_t i = 0; i < n; ++i) {
      const T g = applied_gradient(gradient_sum[i], parameters[i], c.gradient);
      const T s = square_sum[i] + g * g;
      square_sum[i] = s;
      parameters[i] -= quotient(c.step_size * g, std::sqrt(s) + c.epsilon);
    }
  }

  [[gnu::always_inline]] static void update(const Piece<T>& at, const Coefficients& c) {
    loop(at.parameters, at.accumulators[0], at.gradient_sum, at.size, c);
  }
};

template <class T, template <class> class Method>
class Adaptive final : public FlatOptimizer<T> {
  using Kernel = Method<T>;
  using Coefficients = typename Kernel::Coefficients;

 public:
  Adaptive(const OptimizerOptions& options, const ParameterLayout& layout,
           std::vector<GroupOptions> groups)
      : options_(std::get<typename Kernel::Options>(options.method)),
        ranges_(layout, std::move(groups), options.weight_decay, options.momentum) {
    for (const Accumulator& one : Kernel::accumulators(options_, ranges_.any_momentum())) {
      accumulators_.emplace_back(one.is_used ? ranges_.size() : 0, static_cast<T>(one.initial));
    }
  }

  void step(const Update<T>& update, Workers& workers) override {
    const auto& factor = update.rates.optimizer.mean_factor;
    if (factor) multiply(std::span<T>(accumulators_.back()), static_cast<T>(*factor), workers);
    const auto ranges = ranges_.of_step(update, [&](const LayerRates& layer) {
      return Kernel::coefficients(options_, steps_.of(layer.index), layer,
                                  {.factor = update.gradient_factor,
                                   .clip = update.clip,
                                   .weight_decay = static_cast<T>(layer.weight_decay)});
    });
    steps_.count(ranges_.layers(), update.unreached);
    for_each_piece(
        update, ranges, workers,
        [&](std::size_t begin, std::size_t end, const Coefficients& coefficients) {
          Piece<T> at{.parameters = update.parameters.data() + begin,
                      .gradient_sum = update.gradient_sum.data() + begin,
                      .size = end - begin};
          for (std::size_t i = 0; i < accumulators_.size(); ++i) {
            if (!accumulators_[i].empty()) at.accumulators.at(i) = accumulators_[i].data() + begin;
          }
          with_vectors([&]() __attribute__((always_inline)) { Kernel::update(at, coefficients); });
        });
  }

  void visit_state(StateVisitor& state) override {
    if (!Kernel::kSteps.empty()) steps_.visit_state(state, Kernel::kSteps, ranges_.layers());
    auto values = accumulators_.begin();
    for (const Accumulator& one : Kernel::accumulators(options_, ranges_.any_momentum())) {
      state.values(one.name, std::span<T>(*values++));
    }
  }

  [[nodiscard]] bool follows_sums() const override { return false; }
  [[nodiscard]] OptimizerNumbers numbers() const override {
    return Kernel::kHasVelocity ? ranges_.numbers() : OptimizerNumbers();
  }

 private:
  typename Kernel::Options options_;
  LayerRanges<Coefficients> ranges_;
  LayerSteps steps_;
  // Arrays that are not used are empty.
  std::vector<std::vector<T>> accumulators_;
};

template <class T>
using AdaptiveRmsprop = Adaptive<T, Rmsprop>;
template <class T>
using AdaptiveAdagrad = Adaptive<T, Adagrad>;

}  // namespace

OptimizerRow rmsprop_row() {
  return row_of_method<RmspropOptions, AdaptiveRmsprop>(
      {.name = "rmsprop",
       .help = "with --momentum (Tieleman and Hinton 2012)",
       .numbers = [](OptimizerMethod& method) -> std::vector<MethodNumber> {
         auto& rmsprop = std::get<RmspropOptions>(method);
         return {{"alpha", "alpha", &rmsprop.alpha, kBelowOne},
                 {"eps", "epsilon", &rmsprop.epsilon, kNotNegative}};
       },
       .read =
           [](Spec& spec, OptimizerMethod& method) {
             bool& centered = std::get<RmspropOptions>(method).centered;
             centered = spec.flag("centered", centered);
           },
       .facts = [](const OptimizerMethod& method) -> MethodFacts {
         const auto& rmsprop = std::get<RmspropOptions>(method);
         return {.usual_rate = 0.001,
                 .usual_momentum = 0,
                 .remembered = rmsprop.centered ? 2 : 1,
                 .memory = rmsprop.centered ? "centered" : "",
                 .bound = {{"alpha", fmt::to_string(rmsprop.alpha)},
                           {"centered", fmt::to_string(rmsprop.centered)},
                           {"epsilon", fmt::to_string(rmsprop.epsilon)}}};
       }});
}

OptimizerRow adagrad_row() {
  return row_of_method<AdagradOptions, AdaptiveAdagrad>(
      {.name = "adagrad",
       .help = "with sums of squares (Duchi et al. 2011)",
       .numbers = [](OptimizerMethod& method) -> std::vector<MethodNumber> {
         auto& adagrad = std::get<AdagradOptions>(method);
         return {{"eps", "epsilon", &adagrad.epsilon, kNotNegative},
                 {"lr-decay", "learning-rate decay", &adagrad.lr_decay, kNotNegative},
                 {"initial", "initial accumulator", &adagrad.initial_accumulator, kNotNegative}};
       },
       .facts = [](const OptimizerMethod& method) -> MethodFacts {
         const auto& adagrad = std::get<AdagradOptions>(method);
         return {.usual_rate = 0.01,
                 .begins_with_zeros = adagrad.initial_accumulator == 0,
                 .remembered = 1,
                 .bound = {{"lr_decay", fmt::to_string(adagrad.lr_decay)},
                           {"initial", fmt::to_string(adagrad.initial_accumulator)},
                           {"epsilon", fmt::to_string(adagrad.epsilon)}}};
       }});
}

}  // namespace rubato
