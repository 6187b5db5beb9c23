// Adam and AdamW take one pass over memory, divided among all threads; AdamOptions has the
// formulas. AMSGrad and the second moment of minibatches are template parameters of the one kernel,
// update_piece(). Coefficients are computed in double, once for each step and tensor, and rounded
// to T; neighbouring tensors with equal ones form one range. step() first changes what the
// optimizer remembers as the rule has answered, then computes the coefficients from the numbers of
// the update in progress, and counts that update before the kernel runs.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/spec.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/optimizer.hpp>

#include "base/core/throw_error.hpp"
#include "base/machine/instruction_set.hpp"
#include "optimizer_row.hpp"
#include "ranges.hpp"

namespace rubato {

namespace {

template <class T>
struct AdamCoefficients {
  GradientCoefficients<T> gradient;
  T beta1 = 0;
  // 1 - beta1, and 1 - beta2.
  T rest1 = 1;
  T beta2 = 0;
  T rest2 = 1;
  T root_of_correction2 = 1;
  T epsilon = 0;
  T step_size = 0;
  // The share of a parameter that decoupled weight decay leaves.
  T left = 1;
  // Makes the mean of the minibatches' squares of their sum.
  T square_factor = 1;

  friend bool operator==(const AdamCoefficients&, const AdamCoefficients&) = default;
};

// `square_sum` is read only if `Minibatches`.
template <bool Amsgrad, bool Minibatches, class T>
[[gnu::always_inline]] inline void update_piece(T* __restrict parameters, T* __restrict mean,
                                                T* __restrict square, T* __restrict largest,
                                                const T* __restrict gradient_sum,
                                                const T* __restrict square_sum, std::size_t n,
                                                AdamCoefficients<T> c) {
  for (std::size_t i = 0; i < n; ++i) {
    const T g = applied_gradient(gradient_sum[i], parameters[i], c.gradient);
    const T m = c.beta1 * mean[i] + c.rest1 * g;
    T v = c.beta2 * square[i] + c.rest2 * g * g;
    if constexpr (Minibatches) {
      // The weight decay is the same in all minibatches, so their variance does not contain it. A
      // step of one minibatch has none.
      const T undecayed = c.gradient.factor * gradient_sum[i];
      const T variance = c.square_factor * square_sum[i] - undecayed * undecayed;
      v += c.rest2 * (variance > T{0} ? variance : T{0});
    }
    mean[i] = m;
    square[i] = v;
    T u = v;
    if constexpr (Amsgrad) {
      u = v > largest[i] ? v : largest[i];
      largest[i] = u;
    }
    const T divisor = std::sqrt(u) / c.root_of_correction2 + c.epsilon;
    parameters[i] = c.left * parameters[i] - quotient(c.step_size * m, divisor);
  }
}

// Multiplies the variance in mean squares by `factor`. `mean_left` and `square_left` are 1 minus
// the products of the betas: moments divided by them have no bias.
template <class T>
void scale_variance(std::span<const T> mean, std::span<T> square, T mean_left, T square_left,
                    T factor) {
  for (std::size_t i = 0; i < square.size(); ++i) {
    const T m = mean[i] / mean_left;
    const T variance = square[i] - square_left * m * m;
    if (variance > T{0}) square[i] = square_left * m * m + variance * factor;
  }
}

template <class T>
class Adam final : public FlatOptimizer<T> {
 public:
  Adam(const OptimizerOptions& options, const ParameterLayout& layout,
       std::vector<GroupOptions> groups)
      : options_(std::get<AdamOptions>(options.method)),
        layout_(layout),
        ranges_(layout, std::move(groups), options.weight_decay, options.momentum),
        mean_(ranges_.size()),
        square_(ranges_.size()),
        largest_(options_.amsgrad ? ranges_.size() : 0) {}

  void step(const Update<T>& update, Workers& workers) override {
    require_size(update, ranges_.size());
    if (needs_minibatch_squares() && update.square_sum.size() != ranges_.size()) {
      throw_error(
          "the second moment of minibatches needs the squares of {} values and has those of {}; "
          "accepted: one in Update::square_sum for each",
          ranges_.size(), update.square_sum.size());
    }
    const OptimizerAnswer& answer = update.rates.optimizer;
    const AdamOptions now = answered(answer);
    begin_products(now, answer);
    change_memory(answer, workers);
    const auto ranges = ranges_.of_step(
        update, [&](const LayerRates& layer) { return coefficients(now, layer, update); });
    steps_.count(ranges_.layers(), update.unreached);
    mean_products_.count(now.beta1, update.unreached);
    square_products_.count(now.beta2, update.unreached);
    for_each_piece(update, ranges, workers,
                   [&](std::size_t begin, std::size_t end, const AdamCoefficients<T>& c) {
                     with_vectors([&]() __attribute__((always_inline)) {
                       if (needs_minibatch_squares()) {
                         update_range<true>(update, begin, end, c);
                       } else {
                         update_range<false>(update, begin, end, c);
                       }
                     });
                   });
  }

  void visit_state(StateVisitor& state) override {
    steps_.visit_state(state, "optimizer.adam.steps", ranges_.layers());
    mean_products_.visit_state(state, "optimizer.adam.beta1_products", ranges_.layers());
    square_products_.visit_state(state, "optimizer.adam.beta2_products", ranges_.layers());
    state.values("optimizer.adam.mean", std::span<T>(mean_));
    state.values("optimizer.adam.square", std::span<T>(square_));
    state.values("optimizer.adam.largest_square", std::span<T>(largest_));
  }

  [[nodiscard]] bool needs_minibatch_squares() const override {
    return options_.second_moment == SecondMoment::minibatch;
  }
  [[nodiscard]] bool follows_sums() const override { return false; }
  [[nodiscard]] OptimizerNumbers numbers() const override {
    return {.beta1 = options_.beta1,
            .beta2 = options_.beta2,
            .epsilon = options_.epsilon,
            .has_mean = true,
            .has_squares = true,
            .of_minibatches = needs_minibatch_squares(),
            .has_metric = true};
  }

  [[nodiscard]] bool fill_metric(std::span<T> diagonal, Workers& workers) const override {
    // The square of a gradient over the mean of k others' is F-distributed with 1 and k degrees of
    // freedom, and has a variance only for k above 4.
    constexpr std::int64_t kFewest = 5;
    const double largest_product = BetaProducts::power(options_.beta2, kFewest) * (1 + 1e-12);
    bool any = false;
    std::size_t begin = 0;
    for (std::size_t layer = 0; layer < layout_.layers(); ++layer) {
      const std::size_t end = layout_.layer_ends[layer];
      const double product = square_products_.before(layer, options_.beta2, steps_.of(layer));
      const bool known = product <= largest_product;
      fill_quotients(begin, known ? static_cast<T>(std::sqrt(1 - product)) : T{0},
                     diagonal.subspan(begin, end - begin), workers);
      any = any || known;
      begin = end;
    }
    return any;
  }

 private:
  // Fills the metric of the tensor that begins at `first`: 0 if `root_of_left` is 0, or where no
  // gradient has been other than 0.
  void fill_quotients(std::size_t first, T root_of_left, std::span<T> diagonal,
                      Workers& workers) const {
    const T* const squares = (largest_.empty() ? square_ : largest_).data() + first;
    const auto epsilon = static_cast<T>(options_.epsilon);
    workers.for_each_range(diagonal.size(), [&](std::size_t begin, std::size_t end) {
      with_vectors([&]() __attribute__((always_inline)) {
        for (std::size_t i = begin; i < end; ++i) {
          const T root = quotient(std::sqrt(squares[i]), root_of_left);
          diagonal[i] = quotient(root == T{0} ? T{0} : T{1}, root + epsilon);
        }
      });
    });
  }

  // The options with what the rule has answered.
  [[nodiscard]] AdamOptions answered(const OptimizerAnswer& answer) const {
    AdamOptions now = options_;
    now.beta1 = answer.beta1.value_or(options_.beta1);
    now.beta2 = answer.beta2.value_or(options_.beta2);
    now.epsilon = answer.epsilon.value_or(options_.epsilon);
    return now;
  }

  // Keeps products where the update in progress makes them something else than powers.
  void begin_products(const AdamOptions& now, const OptimizerAnswer& answer) {
    if (now.beta1 != options_.beta1 || answer.mean_factor == 0.0) {
      mean_products_.keep(options_.beta1, steps_, ranges_.layers());
    }
    if (now.beta2 != options_.beta2 || answer.forget_squares) {
      square_products_.keep(options_.beta2, steps_, ranges_.layers());
    }
  }

  void change_memory(const OptimizerAnswer& answer, Workers& workers) {
    if (answer.variance_factor) scale_variances(*answer.variance_factor, workers);
    if (answer.mean_factor) {
      multiply(std::span<T>(mean_), static_cast<T>(*answer.mean_factor), workers);
      if (*answer.mean_factor == 0) mean_products_.forget();
    }
    if (!answer.forget_squares) return;
    multiply(std::span<T>(square_), T{0}, workers);
    multiply(std::span<T>(largest_), T{0}, workers);
    square_products_.forget();
  }

  void scale_variances(double factor, Workers& workers) {
    std::size_t begin = 0;
    for (std::size_t layer = 0; layer < layout_.layers(); ++layer) {
      const std::size_t end = layout_.layer_ends[layer];
      const std::int64_t step = steps_.of(layer);
      const auto mean_left = static_cast<T>(1 - mean_products_.before(layer, options_.beta1, step));
      const auto square_left =
          static_cast<T>(1 - square_products_.before(layer, options_.beta2, step));
      // Nothing is remembered before the first update.
      if (mean_left > T{0} && square_left > T{0}) {
        workers.for_each_range(end - begin, [&](std::size_t first, std::size_t last) {
          const auto part = [&](std::vector<T>& of) {
            return of.empty() ? std::span<T>()
                              : std::span<T>(of).subspan(begin + first, last - first);
          };
          for (const std::span<T> squares : {part(square_), part(largest_)}) {
            scale_variance<T>(part(mean_), squares, mean_left, square_left, static_cast<T>(factor));
          }
        });
      }
      begin = end;
    }
  }

  [[nodiscard]] AdamCoefficients<T> coefficients(const AdamOptions& now, const LayerRates& layer,
                                                 const Update<T>& update) const {
    const std::int64_t step = steps_.of(layer.index);
    const double correction1 = 1 - mean_products_.of(layer.index, now.beta1, step);
    const double correction2 = 1 - square_products_.of(layer.index, now.beta2, step);
    const double shortening = now.decoupled ? layer.rate * layer.weight_decay : 0;
    return {.gradient = {.factor = update.gradient_factor,
                         .clip = update.clip,
                         .weight_decay = static_cast<T>(now.decoupled ? 0 : layer.weight_decay)},
            .beta1 = static_cast<T>(now.beta1),
            .rest1 = static_cast<T>(1 - now.beta1),
            .beta2 = static_cast<T>(now.beta2),
            .rest2 = static_cast<T>(1 - now.beta2),
            .root_of_correction2 = static_cast<T>(std::sqrt(correction2)),
            .epsilon = static_cast<T>(now.epsilon),
            .step_size = static_cast<T>(layer.rate / correction1),
            .left = static_cast<T>(1 - shortening),
            .square_factor = update.square_factor};
  }

  template <bool Minibatches>
  [[gnu::always_inline]] void update_range(const Update<T>& update, std::size_t begin,
                                           std::size_t end, const AdamCoefficients<T>& c) {
    T* const parameters = update.parameters.data() + begin;
    const T* const gradient = update.gradient_sum.data() + begin;
    const T* const squares = Minibatches ? update.square_sum.data() + begin : nullptr;
    T* const mean = mean_.data() + begin;
    T* const square = square_.data() + begin;
    if (largest_.empty()) {
      update_piece<false, Minibatches, T>(parameters, mean, square, nullptr, gradient, squares,
                                          end - begin, c);
    } else {
      update_piece<true, Minibatches>(parameters, mean, square, largest_.data() + begin, gradient,
                                      squares, end - begin, c);
    }
  }

  AdamOptions options_;
  ParameterLayout layout_;
  LayerRanges<AdamCoefficients<T>> ranges_;
  LayerSteps steps_;
  BetaProducts mean_products_;
  BetaProducts square_products_;
  std::vector<T> mean_;
  std::vector<T> square_;
  // The largest mean squares so far; empty without AMSGrad.
  std::vector<T> largest_;
};

// Adam or AdamW, which is Adam with another weight decay and remembers the same.
template <bool Decoupled>
OptimizerRow row_of_adam(std::string_view name, std::string_view help) {
  return row_of_method<AdamOptions, Adam>(
      {.name = name,
       .help = help,
       .memory_name = "adam",
       .is =
           [](const OptimizerMethod& method) {
             const auto* const adam = std::get_if<AdamOptions>(&method);
             return adam != nullptr && adam->decoupled == Decoupled;
           },
       .numbers = [](OptimizerMethod& method) -> std::vector<MethodNumber> {
         auto& adam = std::get<AdamOptions>(method);
         return {{"beta1", "beta1", &adam.beta1, kBelowOne},
                 {"beta2", "beta2", &adam.beta2, kBelowOne},
                 {"eps", "epsilon", &adam.epsilon, kNotNegative}};
       },
       .read =
           [](Spec& spec, OptimizerMethod& method) {
             auto& adam = std::get<AdamOptions>(method);
             adam.amsgrad = spec.flag("amsgrad", adam.amsgrad);
             adam.second_moment = spec.choice("second-moment", adam.second_moment, kSecondMoments);
             adam.decoupled = Decoupled;
           },
       .facts = [](const OptimizerMethod& method) -> MethodFacts {
         const auto& adam = std::get<AdamOptions>(method);
         const bool squares = adam.second_moment == SecondMoment::minibatch;
         const std::string_view moment = choice_name(kSecondMoments, adam.second_moment);
         return {.usual_rate = 0.001,
                 .squares = squares,
                 .betas = true,
                 .remembered = adam.amsgrad ? 3 : 2,
                 .memory = adam.amsgrad ? "amsgrad" : "",
                 .bound = {{"betas", fmt::format("{} {}", adam.beta1, adam.beta2)},
                           {"amsgrad", fmt::to_string(adam.amsgrad)},
                           {"epsilon", fmt::to_string(adam.epsilon)},
                           {"second_moment", std::string(squares ? moment : "")}}};
       }});
}

}  // namespace

OptimizerRow adam_row() {
  return row_of_adam<false>(
      "adam",
      "with moments of the gradient (Kingma and Ba 2015); amsgrad by Reddi et al. 2018, second "
      "moments of minibatches by Wang and Aitchison 2024");
}

OptimizerRow adamw_row() {
  return row_of_adam<true>("adamw",
                           "adam with decoupled weight decay (Loshchilov and Hutter 2019)");
}

}  // namespace rubato
