// How long products are cut: every value is added once, and where the parts end is a function of
// the length alone, since it decides the order of the sum and so its bits.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <gmock/gmock.h>

#include "eigen/all_kernels.hpp"
#include "loop/eigen/dense_parameters.hpp"
#include "support/matchers.hpp"
#include "support/sizes.hpp"

namespace rubato {
namespace {

using dense::Batch;
using dense::Kernels;
using dense::Layer;
using test::all_kernels;

template <class T>
using Rows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using PaddedRows = Eigen::Map<Rows<T>, Eigen::Unaligned, Eigen::OuterStride<>>;

// A network on some samples, and its memory.
template <class T>
class Network {
 public:
  Network(std::vector<Layer> layers, std::ptrdiff_t parameters, Rows<T> inputs)
      : layers_(std::move(layers)),
        inputs_(std::move(inputs)),
        parameters_(static_cast<std::size_t>(parameters)),
        packed_(dense::kPackedValues) {
    std::size_t largest = 0;
    for (const Layer& layer : layers_) {
      const auto size = static_cast<std::size_t>(inputs_.rows() * stride_of(layer));
      pointers_.push_back(outputs_.emplace_back(size).data());
      largest = std::max(largest, size);
    }
    scratch_ = AlignedValues<T>(largest);
  }

  // The weights of a layer, in `values` that are laid out as the parameters.
  [[nodiscard]] Eigen::Map<Rows<T>> weights(std::size_t layer, T* values) const {
    const Layer& of = layers_[layer];
    return {values + of.weights, of.outputs, of.inputs};
  }
  [[nodiscard]] Eigen::Map<Rows<T>> weights(std::size_t layer) const {
    return weights(layer, parameters_.data());
  }
  [[nodiscard]] PaddedRows<T> outputs(std::size_t layer) const {
    const Layer& of = layers_[layer];
    return {pointers_[layer], inputs_.rows(), of.outputs, Eigen::OuterStride<>(stride_of(of))};
  }
  // Packs the weights as they are, for batch() to have them from now on.
  void pack(const Kernels<T>& kernels) {
    panels_.clear();
    for (const Layer& layer : layers_) {
      panels_.push_back({.forward = packed(kernels, layer, false),
                         .backward = panels_.empty() ? nullptr : packed(kernels, layer, true)});
    }
  }
  [[nodiscard]] Batch<T> batch() const {
    return {.layers = layers_.data(),
            .layer_count = std::ssize(layers_),
            .parameters = parameters_.data(),
            .panels = panels_.empty() ? nullptr : panels_.data(),
            .samples = inputs_.rows(),
            .inputs = inputs_.data(),
            .outputs = pointers_.data(),
            .scratch = scratch_.data(),
            .packed = packed_.data()};
  }

 private:
  static std::ptrdiff_t stride_of(const Layer& layer) {
    return (layer.outputs + dense::kRowStep - 1) / dense::kRowStep * dense::kRowStep;
  }
  T* packed(const Kernels<T>& kernels, const Layer& layer, bool backward) {
    const auto values = static_cast<std::size_t>(kernels.panel_values(layer, backward));
    T* const panel = panel_memory_.emplace_back(values).data();
    for (std::ptrdiff_t part = 0; part < kernels.panel_parts(layer, backward); ++part) {
      kernels.pack_panel(layer, parameters_.data(), backward, part, panel);
    }
    return panel;
  }

  std::vector<Layer> layers_;
  Rows<T> inputs_;
  AlignedValues<T> parameters_;
  std::vector<AlignedValues<T>> outputs_;
  AlignedValues<T> scratch_;
  AlignedValues<T> packed_;
  std::vector<T*> pointers_;
  std::vector<AlignedValues<T>> panel_memory_;
  std::vector<dense::Panels<T>> panels_;
};

// Where the parts of a sum of so many products end. Of large, 1 and -large, 8 values apart, the sum
// is 0 within a part, where 1 is lost beside large, and 1 where the first part ends between large
// and 1. Each sample asks at another place.
template <class T>
std::vector<std::ptrdiff_t> ends_of_parts(const Kernels<T>& kernels, std::ptrdiff_t depth) {
  constexpr std::ptrdiff_t kStep = 8;
  // Whole vectors for the kernels of any instruction set, which take all of them alike.
  constexpr std::ptrdiff_t kOutputs = 48;
  constexpr T kLarge = 2 / std::numeric_limits<T>::epsilon();
  const std::ptrdiff_t places = (depth - 1) / kStep - 1;
  Rows<T> inputs = Rows<T>::Zero(places, depth);
  for (std::ptrdiff_t place = 0; place < places; ++place) {
    inputs(place, place * kStep) = kLarge;
    inputs(place, (place + 1) * kStep) = 1;
    inputs(place, (place + 2) * kStep) = -kLarge;
  }
  const std::ptrdiff_t weights = depth * kOutputs;
  const Network<T> network({{.inputs = depth,
                             .outputs = kOutputs,
                             .weights = 0,
                             .biases = static_cast<std::size_t>(weights)}},
                           weights + kOutputs, inputs);
  network.weights(0).setOnes();
  kernels.forward(network.batch());
  std::vector<std::ptrdiff_t> ends;
  for (std::ptrdiff_t place = 0; place < places; ++place) {
    const auto sums = network.outputs(0).row(place).array();
    EXPECT_TRUE((sums == 0).all() || (sums == 1).all()) << place;
    if (sums[0] == 1) ends.push_back((place + 1) * kStep);
  }
  return ends;
}

template <class T>
void expect_equal_parts() {
  for (const auto& [name, kernels] : all_kernels<T>()) {
    SCOPED_TRACE(name);
    EXPECT_THAT(ends_of_parts(kernels, 264), ElementsAre());
    EXPECT_THAT(ends_of_parts(kernels, 265), ElementsAre(136));
    EXPECT_THAT(ends_of_parts(kernels, 304), ElementsAre(152));
    EXPECT_THAT(ends_of_parts(kernels, 305), ElementsAre(160));
    EXPECT_THAT(ends_of_parts(kernels, 528), ElementsAre(264));
    EXPECT_THAT(ends_of_parts(kernels, 529), ElementsAre(184, 368));
    EXPECT_THAT(ends_of_parts(kernels, 784), ElementsAre(264, 528));
  }
}

// As few parts of up to 264 as there may be, each of the same multiple of 8 but for the last.
TEST(Blocking, CutsLongSumsIntoEqualParts) {
  expect_equal_parts<float>();
  expect_equal_parts<double>();
}

// The product of two numbers added to a third as the kernels of that name do it.
template <class T>
T multiply_add(const std::string& name, T a, T b, T c) {
  return name == "SSE" ? a * b + c : std::fma(a, b, c);
}

// One value after the other: what every vector of every width comes to.
template <class T>
void expect_one_order(std::ptrdiff_t samples, std::ptrdiff_t depth, std::ptrdiff_t width) {
  std::mt19937 generator(7);
  std::normal_distribution<T> normal;
  const auto drawn = [&](std::ptrdiff_t rows, std::ptrdiff_t columns) -> Rows<T> {
    return Rows<T>::NullaryExpr(rows, columns, [&] { return normal(generator); });
  };
  const Rows<T> inputs = drawn(samples, depth);
  const Rows<T> weights = drawn(width, depth);
  const Network<T> network({{.inputs = depth,
                             .outputs = width,
                             .weights = 0,
                             .biases = static_cast<std::size_t>(weights.size())}},
                           weights.size() + width, inputs);
  network.weights(0) = weights;
  const std::ptrdiff_t parts = (depth + dense::kBlockDepth - 1) / dense::kBlockDepth;
  const std::ptrdiff_t part = ((depth + parts - 1) / parts + 7) / 8 * 8;
  for (const auto& [name, kernels] : all_kernels<T>()) {
    SCOPED_TRACE(name);
    kernels.forward(network.batch());
    const auto found = network.outputs(0);
    std::ptrdiff_t others = 0;
    for (std::ptrdiff_t s = 0; s < samples; ++s) {
      for (std::ptrdiff_t j = 0; j < width; ++j) {
        T expected{0};
        for (std::ptrdiff_t begin = 0; begin < depth; begin += part) {
          T sum{0};
          for (std::ptrdiff_t k = begin; k < std::min(begin + part, depth); ++k) {
            sum = multiply_add(name, weights(j, k), inputs(s, k), sum);
          }
          expected += sum;
        }
        others += expected != found(s, j) ? 1 : 0;
      }
    }
    EXPECT_EQ(others, 0);
  }
}

TEST(Blocking, AddsEachValueInOneOrderOnEveryCpu) {
  for (const auto& [samples, depth, width] :
       {std::array<std::ptrdiff_t, 3>{1, 1, 1}, {5, 37, 10}, {32, 784, 33}, {7, 300, 145}}) {
    SCOPED_TRACE(testing::Message() << samples << " samples, " << depth << "-" << width);
    expect_one_order<float>(samples, depth, width);
    expect_one_order<double>(samples, depth, width);
  }
}

// Of whole numbers, which every sum here has exactly.
using Matrix = Eigen::MatrixXd;

Matrix whole_values(std::ptrdiff_t rows, std::ptrdiff_t columns, std::uint32_t seed) {
  std::mt19937 generator(seed);
  return Matrix::NullaryExpr(rows, columns,
                             [&] { return static_cast<double>(generator() % 5) - 2; });
}

// Each value by itself: no blocks.
Matrix product(const Matrix& a, const Matrix& b) {
  return a.lazyProduct(b);
}

struct Sizes {
  std::ptrdiff_t samples;
  std::ptrdiff_t inputs;
  std::ptrdiff_t hidden;
  std::ptrdiff_t outputs;
};

// All products of a network with a hidden layer: X W^T, H V^T, D^T H, D V and E^T X.
template <class T>
void expect_exact(const Kernels<T>& kernels, const Sizes& sizes, bool with_panels) {
  const auto [samples, inputs, hidden, outputs] = sizes;
  SCOPED_TRACE(testing::Message() << samples << " samples, " << inputs << "-" << hidden << "-"
                                  << outputs << (with_panels ? ", with panels" : ""));
  const Matrix x = whole_values(samples, inputs, 1);
  const Matrix w = whole_values(hidden, inputs, 2);
  const Matrix v = whole_values(outputs, hidden, 3);
  const Matrix d = whole_values(samples, outputs, 4);
  const Matrix h = product(x, w.transpose()).cwiseMax(0);
  const Matrix e = (h.array() > 0).select(product(d, v), 0);

  const auto biases = static_cast<std::size_t>(w.size() + v.size());
  Network<T> network({{.inputs = inputs, .outputs = hidden, .weights = 0, .biases = biases},
                      {.inputs = hidden,
                       .outputs = outputs,
                       .weights = static_cast<std::size_t>(w.size()),
                       .biases = biases + static_cast<std::size_t>(hidden)}},
                     w.size() + v.size() + hidden + outputs, x.cast<T>());
  network.weights(0) = w.cast<T>();
  network.weights(1) = v.cast<T>();
  if (with_panels) network.pack(kernels);
  kernels.forward(network.batch());
  EXPECT_TRUE(network.outputs(1).template cast<double>() == product(h, v.transpose()));
  network.outputs(1) = d.cast<T>();
  const AlignedValues<T> gradient(biases + static_cast<std::size_t>(hidden + outputs));
  kernels.backward(network.batch(), gradient.data());
  const auto of_weights = [&](std::size_t layer) -> Matrix {
    return network.weights(layer, gradient.data()).template cast<double>();
  };
  EXPECT_TRUE(of_weights(0) == product(e.transpose(), x));
  EXPECT_TRUE(of_weights(1) == product(d.transpose(), h));
}

template <class T>
void expect_exact_sums() {
  const auto lengths = test::cases<std::vector<std::ptrdiff_t>>({265, 529}, {264, 265, 305, 529});
  for (const auto& [name, kernels] : all_kernels<T>()) {
    SCOPED_TRACE(name);
    for (const bool with_panels : {false, true}) {
      const auto expect = [&kernels = kernels, with_panels](const Sizes& sizes) {
        expect_exact(kernels, sizes, with_panels);
      };
      for (const std::ptrdiff_t length : lengths) {
        expect({.samples = 7, .inputs = length, .hidden = 20, .outputs = length});
        expect({.samples = length, .inputs = 20, .hidden = 9, .outputs = 5});
      }
      // More rows and columns than a block has, and with the last more parts of the depth than one.
      expect({.samples = 150, .inputs = 150, .hidden = 160, .outputs = 130});
      expect({.samples = 5, .inputs = 270, .hidden = 300, .outputs = 290});
    }
  }
}

TEST(Blocking, AddsEveryProductOnce) {
  expect_exact_sums<float>();
  expect_exact_sums<double>();
}

}  // namespace
}  // namespace rubato
