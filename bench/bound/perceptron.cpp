// Calls the Eigen engine's kernels for one layer at a time, with the weights packed as in training.
// The gradient by the inputs cannot be had alone: it is the time of two layers, of which the first
// has a single input, less that of the second's gradient of the weights.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/libtorch/model.hpp>
#include <rubato/loop/eigen.hpp>
#include <rubato/loop/trainer.hpp>

#include "../models.hpp"
#include "loop/eigen/dense_parameters.hpp"
#include "loop/eigen/dense_pass.hpp"
#include "loop/eigen/kernels/dense_kernels.hpp"
#include "network.hpp"

namespace rubato::bench {

namespace {

constexpr std::ptrdiff_t padded(std::ptrdiff_t columns) {
  return (columns + dense::kRowStep - 1) / dense::kRowStep * dense::kRowStep;
}

AlignedValues<float> filled(std::ptrdiff_t size) {
  AlignedValues<float> values(static_cast<std::size_t>(size));
  std::ranges::fill(values.values(), 0.01F);
  return values;
}

// The number of gradients that are written in turns, as cores have their own.
constexpr std::size_t kGradients = 4;

// Some layers with all the memory that their kernels need.
class Layers {
 public:
  // widths[0] is the number of inputs.
  Layers(const std::vector<std::int64_t>& widths, std::int64_t minibatches)
      : kernels_(dense_kernels<float>(dense_instruction_set())), samples_(kSamples * minibatches) {
    std::ptrdiff_t end = 0;
    std::ptrdiff_t widest = 0;
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
      dense::Layer layer{.inputs = widths[i], .outputs = widths[i + 1]};
      layer.weights = static_cast<std::size_t>(end);
      end += padded(layer.inputs * layer.outputs);
      layer.biases = static_cast<std::size_t>(end);
      end += padded(layer.outputs);
      layers_.push_back(layer);
      outputs_.push_back(filled(samples_ * padded(layer.outputs)));
      pointers_.push_back(outputs_.back().data());
      widest = std::max(widest, padded(layer.outputs));
    }
    parameters_ = filled(end);
    for (AlignedValues<float>& gradient : gradients_) gradient = filled(end);
    inputs_ = filled(samples_ * widths.front());
    scratch_ = filled(samples_ * widest);
    for (const dense::Layer& layer : layers_) {
      panels_.push_back({.forward = packed(layer, false), .backward = packed(layer, true)});
    }
    batch_ = {.layers = layers_.data(),
              .layer_count = std::ssize(layers_),
              .parameters = parameters_.data(),
              .panels = panels_.data(),
              .samples = samples_,
              .minibatches = minibatches,
              .inputs = inputs_.data(),
              .outputs = pointers_.data(),
              .scratch = scratch_.data(),
              .packed = work_.data()};
  }

  void forward() { kernels_.forward(batch_); }
  void backward() {
    turn_ = (turn_ + 1) % gradients_.size();
    kernels_.backward(batch_, gradients_[turn_].data());
  }

 private:
  float* packed(const dense::Layer& layer, bool backward) {
    float* const panel =
        memory_.emplace_back(filled(kernels_.panel_values(layer, backward))).data();
    for (std::ptrdiff_t part = 0; part < kernels_.panel_parts(layer, backward); ++part) {
      kernels_.pack_panel(layer, parameters_.data(), backward, part, panel);
    }
    return panel;
  }

  dense::Kernels<float> kernels_;
  std::ptrdiff_t samples_;
  std::vector<dense::Layer> layers_;
  AlignedValues<float> parameters_;
  std::array<AlignedValues<float>, kGradients> gradients_;
  std::size_t turn_ = 0;
  AlignedValues<float> inputs_;
  std::vector<AlignedValues<float>> outputs_;
  std::vector<float*> pointers_;
  AlignedValues<float> scratch_;
  AlignedValues<float> work_{dense::kPackedValues};
  std::vector<AlignedValues<float>> memory_;
  std::vector<dense::Panels<float>> panels_;
  dense::Batch<float> batch_;
};

// A row, and what rubato computes in it: the time of the first less that of the second.
struct MeasuredRow {
  Row row{};
  std::array<Timed, kAtOnce.size()> computed{};
  std::array<Timed, kAtOnce.size()> less{};
};

Timed forward_of(const std::vector<std::int64_t>& widths, std::int64_t minibatches) {
  return {.name = {}, .compute = [layers = std::make_shared<Layers>(widths, minibatches)] {
            layers->forward();
          }};
}

Timed backward_of(const std::vector<std::int64_t>& widths, std::int64_t minibatches) {
  return {.name = {}, .compute = [layers = std::make_shared<Layers>(widths, minibatches)] {
            layers->backward();
          }};
}

std::vector<MeasuredRow> rows_of(const std::vector<std::int64_t>& widths, std::size_t weights,
                                 Memory& memory) {
  std::vector<MeasuredRow> rows;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    const std::int64_t inputs = widths[i];
    const std::int64_t outputs = widths[i + 1];
    const std::string layer = fmt::format("linear {}x{} {}x{}", kSamples, inputs, inputs, outputs);
    MeasuredRow forward{.row = {.layer = layer, .pass = "forward", .count = 1}};
    MeasuredRow by_input{.row = {.layer = layer, .pass = "by input", .count = 1}};
    MeasuredRow by_weights{.row = {.layer = layer, .pass = "by weights", .count = 1}};
    for (std::size_t k = 0; k < kAtOnce.size(); ++k) {
      const std::int64_t samples = kSamples * kAtOnce[k];
      forward.computed[k] = forward_of({inputs, outputs}, kAtOnce[k]);
      by_weights.computed[k] = backward_of({inputs, outputs}, kAtOnce[k]);
      by_input.computed[k] = backward_of({1, inputs, outputs}, kAtOnce[k]);
      by_input.less[k] = by_weights.computed[k];
      const auto bound = [&](MeasuredRow& of, const Product& product) {
        of.row.bounds[k].steps.push_back(primitives_of(product, memory));
      };
      bound(forward, {.rows = samples,
                      .columns = outputs,
                      .depth = inputs,
                      .right_transposed = true,
                      .right_distance = weights});
      bound(by_input,
            {.rows = samples, .columns = inputs, .depth = outputs, .right_distance = weights});
      bound(by_weights, {.rows = outputs,
                         .columns = inputs,
                         .depth = samples,
                         .left_transposed = true,
                         .result_distance = kGradients * weights});
    }
    rows.push_back(std::move(forward));
    if (i > 0) rows.push_back(std::move(by_input));
    rows.push_back(std::move(by_weights));
  }
  return rows;
}

void train(const std::vector<std::int64_t>& widths, std::int64_t minibatches, StepTimes& times) {
  const std::int64_t of_step = kSamples * minibatches * kCores;
  const std::int64_t samples = of_step * kSteps;
  auto dataset = DenseDataset<float>::classified(
      std::vector<float>(static_cast<std::size_t>(samples * widths.front()), 0.1F),
      std::vector<std::int64_t>(static_cast<std::size_t>(samples), 1), widths.back());
  TrainOptions options{.epochs = 1, .minibatch_size = kSamples, .cores = kCores};
  options.threads = 1;
  times.restart();
  options.on_span = [&](const Span& span) { times.see(span); };
  Trainer trainer(multi_layer_perceptron(
                      std::move(dataset),
                      DenseNetworkOptions<float>{.hidden = {widths.begin() + 1, widths.end() - 1}}),
                  Trace::constant(of_step), options);
  static_cast<void>(trainer.fit());
}

}  // namespace

Network measure_perceptron(std::string_view network, int rounds) {
  std::vector<std::int64_t> widths;
  std::size_t weights = 0;
  const Model made = model(network)();
  for (const auto& [name, tensor] : made.parameters) {
    weights += tensor.nbytes();
    if (tensor.dim() != 2) continue;
    if (widths.empty()) widths.push_back(tensor.size(1));
    widths.push_back(tensor.size(0));
  }
  Memory memory;
  std::vector<MeasuredRow> rows = rows_of(widths, weights, memory);
  std::array<StepTimes, kAtOnce.size()> times;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t k = 0; k < kAtOnce.size(); ++k) {
      train(widths, kAtOnce[k], times[k]);
      for (MeasuredRow& row : rows) {
        row.row.bounds[k].measure();
        row.computed[k].measure();
        if (row.less[k].compute) row.less[k].measure();
      }
    }
  }
  Network result;
  for (std::size_t k = 0; k < kAtOnce.size(); ++k) {
    result.computed[k] = times[k].computed() * static_cast<double>(kAtOnce[k]);
    result.trained[k] = times[k].trained();
    for (MeasuredRow& row : rows) {
      row.row.rubato[k] = row.computed[k].median() - row.less[k].median();
    }
  }
  for (MeasuredRow& row : rows) result.rows.push_back(std::move(row.row));
  return result;
}

}  // namespace rubato::bench
