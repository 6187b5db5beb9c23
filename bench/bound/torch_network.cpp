// Brings the calls that a minibatch of training consists of into rows, one for each pass through
// layers of the same kind and shape. A layer is an operator that the model or the loss calls. Those
// that multiply matrices or convolve images are bound by the primitive that does the same, all
// others by a copy of the arrays that they read and write; views and the sums of gradients are
// bound by nothing, as a primitive could write its result to where it belongs. The nodes of
// backward have the number of the operator that made them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "network.hpp"
#include "recorded.hpp"

namespace rubato::bench {

namespace {

bool is_product(const Call& call) {
  return call.name == "aten::mm" || call.name == "aten::addmm" || call.name == "aten::bmm";
}

Product product_of(const Call& call) {
  const Array& left = call.inputs[call.inputs.size() - 2];
  const Array& right = call.inputs.back();
  const std::size_t rows = left.sizes.size() - 2;
  return {.count = rows == 0 ? 1 : left.sizes.front(),
          .rows = left.sizes[rows],
          .columns = right.sizes.back(),
          .depth = left.sizes.back(),
          .left_transposed = left.transposed,
          .right_transposed = right.transposed,
          .left_distance = left.distance,
          .right_distance = right.distance,
          .result_distance = call.outputs.front().distance};
}

constexpr std::string_view kAttention = "rubato::attention";

// The products of all heads of rubato::attention, or of its gradient.
std::vector<Product> products_of_attention(const Call& call) {
  const Array& projection = call.inputs[call.name == kAttention ? 0 : 1];
  const std::int64_t heads = call.numbers.front();
  const std::int64_t tokens = projection.sizes[1];
  const Product scores{.count = projection.sizes[0] * heads,
                       .rows = tokens,
                       .columns = tokens,
                       .depth = projection.sizes[2] / (3 * heads),
                       .right_transposed = true,
                       .left_distance = projection.distance,
                       .right_distance = projection.distance};
  Product mixed = scores;
  std::swap(mixed.columns, mixed.depth);
  mixed.right_transposed = false;
  if (call.name == kAttention) return {scores, mixed};
  Product by_keys = mixed;
  by_keys.left_transposed = true;
  // By weights, values, queries and keys.
  return {scores, by_keys, mixed, by_keys};
}

std::string name_of(const Call& call) {
  std::string name = call.name.substr(call.name.rfind(':') + 1);
  // Vectors are weights or statistics.
  for (const Array& input : call.inputs) {
    if (input.sizes.size() > 1) name += fmt::format(" {}", fmt::join(input.sizes, "x"));
  }
  return name;
}

// An operator that the model or the loss calls.
struct Layer {
  std::string name{};
  std::int64_t number = 0;
  bool is_view = false;
  std::optional<Product> product{};
  std::optional<Convolution> convolution{};
  bool is_attention = false;
  // The passes that have a row.
  std::vector<std::string_view> passes{};
};

using Steps = std::vector<std::vector<Timed>>;

class Rows {
 public:
  // Without memory, rows have no bounds.
  Rows(const Calls& calls, Memory* memory) : memory_(memory) {
    for (std::size_t begin = 0; begin < calls.size();) {
      std::size_t end = begin + 1;
      while (end < calls.size() && calls[end].depth > 0) ++end;
      const std::span<const Call> parts(calls.data() + begin, end - begin);
      if (calls[begin].is_operator()) {
        add_forward(parts);
      } else {
        add_backward(parts);
      }
      begin = end;
    }
  }

  [[nodiscard]] std::vector<Row> take() { return std::move(rows_); }

 private:
  // Adds time to the row of that layer's pass. Only the first layer of a row adds bounds.
  void add(Layer& layer, std::string_view pass, double microseconds, Steps bound = {}) {
    auto row = std::ranges::find_if(
        rows_, [&](const Row& r) { return r.layer == layer.name && r.pass == pass; });
    if (row == rows_.end()) {
      rows_.push_back({.layer = layer.name, .pass = std::string(pass)});
      row = std::prev(rows_.end());
    }
    if (std::ranges::find(layer.passes, pass) == layer.passes.end()) {
      layer.passes.push_back(pass);
      ++row->count;
    }
    row->rubato.front() += microseconds;
    if (row->count > 1) return;
    std::ranges::move(bound, std::back_inserter(row->bounds.front().steps));
  }

  template <class Work>
  void add_primitives(Steps& bound, const Work& work) const {
    if (memory_ != nullptr) bound.push_back(primitives_of(work, *memory_));
  }
  void add_copy(Steps& bound, const Call& call) const {
    if (memory_ == nullptr) return;
    std::vector<Memory::Array> reads;
    std::vector<Memory::Array> written;
    for (const Array& a : call.inputs) reads.push_back(memory_->read(a.bytes, a.distance));
    for (const Array& a : call.outputs) written.push_back(memory_->written(a.bytes, a.distance));
    bound.push_back({copy_of(std::move(reads), std::move(written))});
  }

  void add_forward(std::span<const Call> parts) {
    const Call& whole = parts.front();
    Layer layer{.name = name_of(whole), .number = whole.number, .is_view = whole.is_view()};
    Steps bound;
    for (const Call& call : parts) {
      if (is_product(call)) {
        layer.product = product_of(call);
        add_primitives(bound, *layer.product);
      } else if (call.name == kAttention) {
        layer.is_attention = true;
        for (const Product& product : products_of_attention(call)) add_primitives(bound, product);
      } else if (call.name == "aten::convolution") {
        layer.convolution = Convolution{.input = call.inputs[0].sizes,
                                        .weight = call.inputs[1].sizes,
                                        .output = call.outputs[0].sizes,
                                        .stride = call.lists[0],
                                        .padding = call.lists[1],
                                        .input_distance = call.inputs[0].distance,
                                        .weight_distance = call.inputs[1].distance,
                                        .output_distance = call.outputs[0].distance};
        add_primitives(bound, *layer.convolution);
      }
    }
    if (!layer.product && !layer.convolution && !layer.is_attention && !layer.is_view) {
      add_copy(bound, whole);
    }
    add(layer, "forward", median_of(whole.microseconds), std::move(bound));
    layers_.push_back(std::move(layer));
  }

  void add_backward(std::span<const Call> parts) {
    const double all = median_of(parts.front().microseconds);
    const auto node = std::ranges::find_if(parts, &Call::node);
    if (node == parts.end() || node->number < 0) {
      add(sums_, "gradients", all);
      return;
    }
    // Operators without a gradient have the number of the next one that has.
    const auto found = std::find_if(layers_.rbegin(), layers_.rend(), [&](const Layer& layer) {
      return layer.number <= node->number;
    });
    if (found == layers_.rend()) return;
    Layer& layer = *found;
    if (layer.product) {
      add_gradients_of_product(layer, parts, all);
      return;
    }
    Steps bound;
    for (const Call& call : parts.subspan(1)) {
      if (layer.convolution) {
        if (call.name == "aten::convolution_backward") {
          add_gradients_of_convolution(*layer.convolution, call, bound);
        }
      } else if (layer.is_attention) {
        if (!call.name.starts_with(kAttention)) continue;
        for (const Product& product : products_of_attention(call)) add_primitives(bound, product);
      } else if (!layer.is_view && call.depth == node->depth + 1 && !call.is_view()) {
        add_copy(bound, call);
      }
    }
    add(layer, "gradients", all, std::move(bound));
  }

  // Both gradients are one call for rubato.
  void add_gradients_of_convolution(Convolution convolution, const Call& call, Steps& bound) const {
    convolution.output_distance = call.inputs[0].distance;
    for (const Array& gradient : call.outputs) {
      const bool by_input = gradient.sizes == convolution.input;
      if (!by_input && gradient.sizes != convolution.weight) continue;
      convolution.pass = by_input ? Pass::by_input : Pass::by_weights;
      convolution.input_distance = by_input ? gradient.distance : call.inputs[1].distance;
      convolution.weight_distance = by_input ? call.inputs[2].distance : gradient.distance;
      add_primitives(bound, convolution);
    }
  }

  void add_gradients_of_product(Layer& layer, std::span<const Call> parts, double all) {
    for (const Call& call : parts) {
      if (!is_product(call)) continue;
      const Product product = product_of(call);
      // The gradient of the weights is a sum over the rows of forward.
      const bool by_weights = product.count == 1 && product.depth == layer.product->rows;
      const double microseconds = median_of(call.microseconds);
      Steps bound;
      add_primitives(bound, product);
      add(layer, by_weights ? "by weights" : "by input", microseconds, std::move(bound));
      all -= microseconds;
    }
    // What is around the products: views, copies, sums for the bias.
    add(layer, "around gradients", all);
  }

  Memory* memory_;
  std::vector<Layer> layers_;
  Layer sums_{.name = "gradients added to the core's"};
  std::vector<Row> rows_;
};

}  // namespace

Network measure_torch(std::string_view network, int rounds) {
  Calls one = recorded(network, kSamples);
  const Calls four = recorded(network, kSamples * kAtOnce.back());
  Memory memory;
  std::array<std::vector<Row>, kAtOnce.size()> bounds{Rows(one, &memory).take(),
                                                      Rows(four, &memory).take()};
  StepTimes times;
  for (int round = 0; round < rounds; ++round) {
    add_times(network, one);
    add_times(network, times);
    for (auto& rows : bounds) {
      for (Row& row : rows) row.bounds.front().measure();
    }
  }
  Network result{.rows = Rows(one, nullptr).take()};
  for (std::size_t k = 0; k < kAtOnce.size(); ++k) {
    const auto minibatches = static_cast<double>(kAtOnce[k]);
    result.computed[k] = times.computed() * minibatches;
    result.trained[k] = times.trained() * minibatches;
    for (std::size_t i = 0; i < result.rows.size(); ++i) {
      result.rows[i].rubato[k] = result.rows[i].rubato.front() * minibatches;
      result.rows[i].bounds[k] = std::move(bounds[k][i].bounds.front());
    }
  }
  return result;
}

}  // namespace rubato::bench
