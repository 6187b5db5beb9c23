// Muon (Jordan et al. 2024) updates matrices by the nearest orthogonal matrix to the mean gradient,
// which a few Newton-Schulz iterations approximate; AdamW updates all other tensors, which are
// copied together for it. Every matrix is oriented so that it has at most as many rows as columns,
// since an iteration multiplies squares of its rows. All matrices are divided into tiles, and these
// among the threads, so that a step has as many barriers as the largest matrix needs alone. Every
// element of a product is summed by one thread in ascending order, and norms by chunks of fixed
// size: the bits depend neither on threads nor on tiles.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/spec.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/numbers/sums.hpp>

#include "base/core/throw_error.hpp"
#include "base/machine/instruction_set.hpp"
#include "optimizer_row.hpp"
#include "ranges.hpp"

namespace rubato {

namespace {

// Products are computed in square tiles, a part of the depth at a time: both fit the first-level
// cache. Neither changes a bit, because every element is summed in ascending order.
constexpr std::size_t kTile = 64;
constexpr std::size_t kPart = 32;

template <class T>
using Tile = std::array<T, kTile * kTile>;

// sum += a b for `rows` rows of a tile. Rows of `a` have the distance `stride`; those of `b` are
// packed, `width` values each.
template <std::size_t width, class T>
[[gnu::always_inline]] inline void add_product(T* __restrict sum, std::size_t rows, const T* a,
                                               std::size_t stride, std::size_t depth,
                                               const T* __restrict b) {
  constexpr std::size_t kAtOnce = 8;
  for (std::size_t i = 0; i < rows; ++i, sum += kTile, a += stride) {
    std::size_t k = 0;
    for (; k + kAtOnce <= depth; k += kAtOnce) {
      const T* const x = a + k;
      const T* const y = b + k * width;
      for (std::size_t j = 0; j < width; ++j) {
        T s = sum[j];
        for (std::size_t u = 0; u < kAtOnce; ++u) s += x[u] * y[u * width + j];
        sum[j] = s;
      }
    }
    for (; k < depth; ++k) {
      for (std::size_t j = 0; j < width; ++j) sum[j] += a[k] * b[k * width + j];
    }
  }
}

// A factor of a product, by the distances from a row to the next and from a column to the next.
template <class T>
struct Factor {
  const T* data = nullptr;
  std::size_t row = 0;
  std::size_t column = 0;
};

template <std::size_t width, class T>
[[gnu::always_inline]] inline void fill_tile(Tile<T>& sum, std::size_t rows, std::size_t columns,
                                             std::size_t depth, const T* a, std::size_t stride,
                                             const Factor<T>& b) {
  alignas(64) std::array<T, kPart * width> packed{};
  for (std::size_t first = 0; first < depth; first += kPart) {
    const std::size_t deep = std::min(kPart, depth - first);
    const T* const from = b.data + first * b.row;
    if (b.column == 1) {
      for (std::size_t k = 0; k < deep; ++k) {
        for (std::size_t j = 0; j < columns; ++j) packed[k * width + j] = from[k * b.row + j];
      }
    } else {
      for (std::size_t j = 0; j < columns; ++j) {
        for (std::size_t k = 0; k < deep; ++k) packed[k * width + j] = from[j * b.column + k];
      }
    }
    add_product<width>(sum.data(), rows, a + first, stride, deep, packed.data());
  }
}

// Calls done(row, column, value) for the elements of the tile of a b that begins there: `a` has
// contiguous rows with the distance `stride`, and either the rows or the columns of `b` are
// contiguous.
template <class T, class Done>
[[gnu::always_inline]] inline void for_product(const MatrixShape& shape, std::size_t row,
                                               std::size_t column, std::size_t depth, const T* a,
                                               std::size_t stride, Factor<T> b, const Done& done) {
  constexpr std::size_t kStep = 16;
  const std::size_t rows = std::min(kTile, shape.rows - row);
  const std::size_t columns = std::min(kTile, shape.columns - column);
  a += row * stride;
  b.data += column * b.column;
  alignas(64) Tile<T> sum{};
  switch ((columns + kStep - 1) / kStep) {
    case 1:
      fill_tile<kStep>(sum, rows, columns, depth, a, stride, b);
      break;
    case 2:
      fill_tile<2 * kStep>(sum, rows, columns, depth, a, stride, b);
      break;
    case 3:
      fill_tile<3 * kStep>(sum, rows, columns, depth, a, stride, b);
      break;
    default:
      fill_tile<kTile>(sum, rows, columns, depth, a, stride, b);
  }
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) done(row + i, column + j, sum[i * kTile + j]);
  }
}

// A matrix in training, oriented so that it has at most as many rows as columns.
struct Matrix {
  std::size_t layer = 0;
  // The beginning in the parameters, and in what is kept of matrices alone.
  std::size_t parameters = 0;
  std::size_t kept = 0;
  // The beginning of its square of rows x rows.
  std::size_t square = 0;
  MatrixShape shape;
  bool transposed = false;

  [[nodiscard]] std::size_t size() const { return shape.rows * shape.columns; }
};

// A part of a matrix that one thread computes: a tile, or a chunk of its elements.
struct Part {
  std::size_t matrix = 0;
  std::size_t row = 0;
  std::size_t column = 0;
};

template <class T>
struct MatrixCoefficients {
  bool is_reached = false;
  GradientCoefficients<T> gradient;
  T momentum = 0;
  // 1 - momentum.
  T rest = 1;
  // The share of a parameter that weight decay leaves.
  T left = 1;
  T step_size = 0;
  // The divisor that bounds the singular values before the first iteration.
  T norm = 1;
};

template <class T>
class Muon final : public FlatOptimizer<T> {
 public:
  Muon(const OptimizerOptions& options, const ParameterLayout& layout,
       std::vector<GroupOptions> groups)
      : options_(std::get<MuonOptions>(options.method)),
        weight_decay_(options.weight_decay),
        layout_(layout),
        groups_(std::move(groups)) {
    divide();
    mean_.resize(kept_);
    next_.resize(kept_);
    oriented_.resize(kept_);
    gram_.resize(squares_);
    polynomial_.resize(squares_);
    coefficients_.resize(matrices_.size());
    norms_.resize(chunks_.size());
    rest_parameters_.resize(rest_layout_.size());
    rest_gradient_.resize(rest_layout_.size());
    adam_ = make_optimizer<T>({.method = AdamOptions{.beta1 = options_.beta1,
                                                     .beta2 = options_.beta2,
                                                     .epsilon = options_.epsilon,
                                                     .decoupled = true},
                               .weight_decay = options.weight_decay},
                              rest_layout_, groups_);
  }

  void step(const Update<T>& update, Workers& workers) override {
    require_size(update, layout_.size());
    step_rest(update, workers);
    if (matrices_.empty()) return;
    if (const auto& factor = update.rates.optimizer.mean_factor) {
      multiply(std::span<T>(mean_), static_cast<T>(*factor), workers);
    }
    set_coefficients(update);
    take_gradients(update, workers);
    orient(workers);
    for (std::int64_t i = 0; i < options_.steps; ++i) iterate(workers);
    apply(update, workers);
  }

  void visit_state(StateVisitor& state) override {
    state.values("optimizer.muon.mean", std::span<T>(mean_));
    adam_->visit_state(state);
  }

  [[nodiscard]] bool follows_sums() const override { return false; }
  [[nodiscard]] OptimizerNumbers numbers() const override {
    OptimizerNumbers numbers = adam_->numbers();
    if (options_.momentum != 0) numbers.momentum = options_.momentum;
    // The updates of matrices are not preconditioned by a diagonal.
    numbers.has_metric = false;
    return numbers;
  }

 private:
  static constexpr std::size_t kChunk = 4096;

  // Divides the tensors among the two methods, and the work on matrices into parts.
  void divide() {
    std::size_t begin = 0;
    for (std::size_t layer = 0; layer < layout_.layers(); ++layer) {
      const std::size_t end = layout_.layer_ends[layer];
      const MatrixShape shape =
          layer < layout_.matrices.size() ? layout_.matrices[layer] : MatrixShape();
      if (shape.rows * shape.columns > 0) {
        add_matrix(layer, begin, shape);
      } else {
        rest_.push_back({.layer = layer, .begin = begin, .end = end});
        rest_layout_.layer_ends.push_back(rest_layout_.size() + end - begin);
        rest_layout_.layer_groups.push_back(layout_.layer_groups[layer]);
        if (layer < layout_.rate_factors.size()) {
          rest_layout_.rate_factors.push_back(layout_.rate_factors[layer]);
        }
      }
      begin = end;
    }
  }

  void add_matrix(std::size_t layer, std::size_t begin, const MatrixShape& shape) {
    const bool transposed = shape.rows > shape.columns;
    const Matrix matrix{
        .layer = layer,
        .parameters = begin,
        .kept = kept_,
        .square = squares_,
        .shape = transposed ? MatrixShape{.rows = shape.columns, .columns = shape.rows} : shape,
        .transposed = transposed};
    const std::size_t index = matrices_.size();
    for (std::size_t at = 0; at < matrix.size(); at += kChunk) {
      chunks_.push_back({.matrix = index, .column = at});
    }
    for (std::size_t i = 0; i < matrix.shape.rows; i += kTile) {
      for (std::size_t j = 0; j < matrix.shape.columns; j += kTile) {
        tiles_.push_back({.matrix = index, .row = i, .column = j});
        if (j <= i) square_tiles_.push_back(tiles_.back());
      }
    }
    kept_ += matrix.size();
    squares_ += matrix.shape.rows * matrix.shape.rows;
    matrices_.push_back(matrix);
  }

  void step_rest(const Update<T>& update, Workers& workers) {
    Update<T> of_rest = update;
    rest_factors_.clear();
    rest_unreached_.clear();
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      const Rest& rest = rest_[i];
      if (!update.rates.layer_factors.empty()) {
        rest_factors_.push_back(update.rates.layer_factors[rest.layer]);
      }
      if (std::ranges::binary_search(update.unreached, rest.layer)) rest_unreached_.push_back(i);
    }
    of_rest.rates.layer_factors = rest_factors_;
    of_rest.unreached = rest_unreached_;
    of_rest.layers = {};
    of_rest.parameters = rest_parameters_;
    of_rest.gradient_sum = rest_gradient_;
    copy_rest(update.parameters, std::span<T>(rest_parameters_), workers);
    copy_rest(update.gradient_sum, std::span<T>(rest_gradient_), workers);
    adam_->step(of_rest, workers);
    for_rest(workers, [&](std::size_t from, std::size_t to, std::size_t size) {
      std::copy_n(rest_parameters_.data() + to, size, update.parameters.data() + from);
    });
  }

  // Calls copy(place in the parameters, place in the rest, size) for each tensor of the rest.
  template <class Copy>
  void for_rest(Workers& workers, const Copy& copy) {
    workers.for_each(static_cast<std::int64_t>(rest_.size()), [&](std::int64_t index, int) {
      const auto i = static_cast<std::size_t>(index);
      const std::size_t size = rest_[i].end - rest_[i].begin;
      copy(rest_[i].begin, rest_layout_.layer_ends[i] - size, size);
    });
  }
  void copy_rest(std::span<const T> values, std::span<T> into, Workers& workers) {
    for_rest(workers, [&](std::size_t from, std::size_t to, std::size_t size) {
      std::copy_n(values.data() + from, size, into.data() + to);
    });
  }

  void set_coefficients(const Update<T>& update) {
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      const Matrix& matrix = matrices_[i];
      const GroupOptions group = group_of(groups_, layout_.layer_groups[matrix.layer]);
      const LayerRates layer = rates_of_layer(matrix.layer, update.rates, layout_, group,
                                              weight_decay_, options_.momentum);
      const double step_size = layer.rate * scale_of(layout_.matrices[matrix.layer]);
      coefficients_[i] = {.is_reached = !std::ranges::binary_search(update.unreached, matrix.layer),
                          .gradient = {.factor = update.gradient_factor, .clip = update.clip},
                          .momentum = static_cast<T>(layer.momentum),
                          .rest = static_cast<T>(1 - layer.momentum),
                          .left = static_cast<T>(1 - layer.rate * layer.weight_decay),
                          .step_size = static_cast<T>(step_size)};
    }
  }

  [[nodiscard]] double scale_of(const MatrixShape& shape) const {
    const auto rows = static_cast<double>(shape.rows);
    const auto columns = static_cast<double>(shape.columns);
    if (options_.scale == MuonScale::adamw) return 0.2 * std::sqrt(std::max(rows, columns));
    return std::sqrt(std::max(1.0, rows / columns));
  }

  // Calls task(part number, matrix, its coefficients) for the parts of matrices that are reached.
  template <class Task>
  void for_parts(const std::vector<Part>& parts, Workers& workers, const Task& task) {
    workers.for_each(static_cast<std::int64_t>(parts.size()), [&](std::int64_t index, int) {
      const auto i = static_cast<std::size_t>(index);
      const std::size_t matrix = parts[i].matrix;
      if (!coefficients_[matrix].is_reached) return;
      with_vectors([&]() __attribute__((always_inline)) {
        task(i, matrices_[matrix], coefficients_[matrix]);
      });
    });
  }

  // Moves the mean gradients, and puts the updates before orthogonalisation into next_.
  void take_gradients(const Update<T>& update, Workers& workers) {
    const bool nesterov = options_.nesterov;
    for_parts(
        chunks_, workers,
        [&](std::size_t i, const Matrix& matrix, const MatrixCoefficients<T>& c)
            __attribute__((always_inline)) {
              const std::size_t first = chunks_[i].column;
              const std::size_t size = std::min(kChunk, matrix.size() - first);
              const T* const sum = update.gradient_sum.data() + matrix.parameters + first;
              T* const mean = mean_.data() + matrix.kept + first;
              T* const next = next_.data() + matrix.kept + first;
              for (std::size_t k = 0; k < size; ++k) {
                const T g = applied_gradient(sum[k], T{0}, c.gradient);
                const T m = c.momentum * mean[k] + c.rest * g;
                mean[k] = m;
                next[k] = nesterov ? c.momentum * m + c.rest * g : m;
              }
              norms_[i] = squared_norm(std::span<const T>(next, size));
            });
    // The chunks of a matrix follow each other.
    std::size_t chunk = 0;
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      double square = 0;
      for (; chunk < chunks_.size() && chunks_[chunk].matrix == i; ++chunk) square += norms_[chunk];
      coefficients_[i].norm = static_cast<T>(std::sqrt(square) + 1e-7);
    }
  }

  // Divides by the norms, from next_ into oriented_.
  void orient(Workers& workers) {
    for_parts(
        tiles_, workers,
        [&](std::size_t i, const Matrix& matrix, const MatrixCoefficients<T>& c)
            __attribute__((always_inline)) {
              for_tile(tiles_[i], matrix, [&](std::size_t at, std::size_t original) {
                oriented_[matrix.kept + at] = next_[matrix.kept + original] / c.norm;
              });
            });
  }

  // Calls task(place in the oriented matrix, place in the tensor) for each element of a tile.
  template <class Task>
  [[gnu::always_inline]] static void for_tile(const Part& tile, const Matrix& matrix,
                                              const Task& task) {
    const MatrixShape& shape = matrix.shape;
    const std::size_t rows = std::min(shape.rows, tile.row + kTile);
    const std::size_t columns = std::min(shape.columns, tile.column + kTile);
    for (std::size_t i = tile.row; i < rows; ++i) {
      for (std::size_t j = tile.column; j < columns; ++j) {
        const std::size_t at = i * shape.columns + j;
        task(at, matrix.transposed ? j * shape.rows + i : at);
      }
    }
  }

  // X = a X + (b A + c A A) X with A = X X^T. Both squares are symmetric to the bit, so only half
  // of each is computed.
  void iterate(Workers& workers) {
    constexpr T kA = static_cast<T>(3.4445);
    constexpr T kB = static_cast<T>(-4.7750);
    constexpr T kC = static_cast<T>(2.0315);
    for_squares(
        workers, [&](const Part& tile, const Matrix& matrix) __attribute__((always_inline)) {
          const std::size_t n = matrix.shape.columns;
          const T* const x = oriented_.data() + matrix.kept;
          const std::size_t rows = matrix.shape.rows;
          T* const gram = gram_.data() + matrix.square;
          for_product<T>({.rows = rows, .columns = rows}, tile.row, tile.column, n, x, n, {x, 1, n},
                         [&](std::size_t i, std::size_t j, T value) {
                           gram[i * rows + j] = gram[j * rows + i] = value;
                         });
        });
    for_squares(
        workers, [&](const Part& tile, const Matrix& matrix) __attribute__((always_inline)) {
          const std::size_t rows = matrix.shape.rows;
          const T* const gram = gram_.data() + matrix.square;
          T* const of = polynomial_.data() + matrix.square;
          for_product<T>({.rows = rows, .columns = rows}, tile.row, tile.column, rows, gram, rows,
                         {gram, rows, 1}, [&](std::size_t i, std::size_t j, T value) {
                           const std::size_t at = i * rows + j;
                           of[at] = of[j * rows + i] = kB * gram[at] + kC * value;
                         });
        });
    for_parts(
        tiles_, workers,
        [&](std::size_t index, const Matrix& matrix, const MatrixCoefficients<T>&)
            __attribute__((always_inline)) {
              const std::size_t n = matrix.shape.columns;
              const std::size_t rows = matrix.shape.rows;
              const T* const x = oriented_.data() + matrix.kept;
              T* const next = next_.data() + matrix.kept;
              for_product<T>(matrix.shape, tiles_[index].row, tiles_[index].column, rows,
                             polynomial_.data() + matrix.square, rows, {x, n, 1},
                             [&](std::size_t i, std::size_t j, T value) {
                               const std::size_t at = i * n + j;
                               next[at] = kA * x[at] + value;
                             });
            });
    std::swap(oriented_, next_);
  }

  template <class Task>
  void for_squares(Workers& workers, const Task& task) {
    for_parts(
        square_tiles_, workers,
        [&](std::size_t i, const Matrix& matrix, const MatrixCoefficients<T>&)
            __attribute__((always_inline)) { task(square_tiles_[i], matrix); });
  }

  void apply(const Update<T>& update, Workers& workers) {
    for_parts(
        tiles_, workers,
        [&](std::size_t i, const Matrix& matrix, const MatrixCoefficients<T>& c)
            __attribute__((always_inline)) {
              T* const parameters = update.parameters.data() + matrix.parameters;
              for_tile(tiles_[i], matrix, [&](std::size_t at, std::size_t original) {
                T& parameter = parameters[original];
                parameter = c.left * parameter - c.step_size * oriented_[matrix.kept + at];
              });
            });
  }

  // A tensor that is AdamW's.
  struct Rest {
    std::size_t layer = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  MuonOptions options_;
  double weight_decay_;
  ParameterLayout layout_;
  std::vector<GroupOptions> groups_;

  std::vector<Matrix> matrices_;
  std::size_t kept_ = 0;
  std::size_t squares_ = 0;
  std::vector<Part> chunks_;
  std::vector<Part> tiles_;
  // The tiles of squares up to their diagonals.
  std::vector<Part> square_tiles_;
  std::vector<MatrixCoefficients<T>> coefficients_;
  std::vector<double> norms_;
  std::vector<T> mean_;
  std::vector<T> oriented_;
  std::vector<T> next_;
  std::vector<T> gram_;
  std::vector<T> polynomial_;

  std::vector<Rest> rest_;
  ParameterLayout rest_layout_;
  std::vector<double> rest_factors_;
  std::vector<std::size_t> rest_unreached_;
  std::vector<T> rest_parameters_;
  std::vector<T> rest_gradient_;
  std::unique_ptr<FlatOptimizer<T>> adam_;
};

constexpr std::int64_t kMostSteps = 100;

}  // namespace

OptimizerRow muon_row() {
  return row_of_method<MuonOptions, Muon>(
      {.name = "muon",
       .help =
           "orthogonal updates of matrices (Jordan et al. 2024), adamw for all else and for the "
           "parameters that match adamw; scale by Liu et al. 2025 or by Jordan",
       .numbers = [](OptimizerMethod& method) -> std::vector<MethodNumber> {
         auto& muon = std::get<MuonOptions>(method);
         return {{"momentum", "momentum", &muon.momentum, kBelowOne},
                 {"beta1", "beta1", &muon.beta1, kBelowOne},
                 {"beta2", "beta2", &muon.beta2, kBelowOne},
                 {"eps", "epsilon", &muon.epsilon, kNotNegative}};
       },
       .read =
           [](Spec& spec, OptimizerMethod& method) {
             auto& muon = std::get<MuonOptions>(method);
             muon.nesterov = spec.flag("nesterov", muon.nesterov);
             muon.steps = spec.whole("steps", muon.steps, 1, kMostSteps);
             muon.scale = spec.choice("scale", muon.scale, kMuonScales);
             const auto pattern =
                 spec.text("adamw", Unset{"none"}, "names of parameters such as '*embed*'");
             if (pattern) muon.adamw = *pattern;
           },
       .check =
           [](const OptimizerOptions& options) {
             const std::int64_t steps = std::get<MuonOptions>(options.method).steps;
             if (steps >= 1 && steps <= kMostSteps) return;
             throw_error("{} Newton-Schulz steps: accepted are 1 to {}", steps, kMostSteps);
           },
       .facts = [](const OptimizerMethod& method) -> MethodFacts {
         const auto& muon = std::get<MuonOptions>(method);
         return {.usual_rate = muon.scale == MuonScale::adamw ? 0.001 : 0.02,
                 .betas = true,
                 .elements = muon.adamw,
                 // AdamW's two; a matrix has one.
                 .remembered = 2,
                 .scratch = 4,
                 // The pattern decides which tensors are matrices.
                 .memory = "adamw=" + muon.adamw,
                 .bound = {{"muon_momentum", fmt::to_string(muon.momentum)},
                           {"muon_nesterov", fmt::to_string(muon.nesterov)},
                           {"steps", fmt::to_string(muon.steps)},
                           {"scale", std::string(choice_name(kMuonScales, muon.scale))},
                           {"beta1", fmt::to_string(muon.beta1)},
                           {"beta2", fmt::to_string(muon.beta2)},
                           {"muon_epsilon", fmt::to_string(muon.epsilon)},
                           {"elements", muon.adamw.empty() ? "of-vectors" : muon.adamw}}};
       }});
}

}  // namespace rubato
