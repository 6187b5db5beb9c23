#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/testing.hpp>

#include "loop/data/images/digits.hpp"

namespace rubato::test {

/// The options of a training and of its model, to be changed side by side.
struct AllOptions : TrainOptions {
  AllOptions() = default;
  AllOptions(TrainOptions options)  // NOLINT(google-explicit-constructor): with the model's default
      : TrainOptions(std::move(options)) {}
  TorchOptions torch{};
};

/// The first `count` of the built-in digits, normalised.
inline TensorDataset digits(std::int64_t count, std::uint64_t seed = 1) {
  const ImageSet images = render_digits(count, seed);
  return to_tensors(images, pixel_statistics(images));
}

inline std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  return {static_cast<const char*>(dense.data_ptr()), dense.nbytes()};
}

/// All parameters of a trainer, and then all its buffers, as bytes.
inline std::string state_bytes(const TorchTrainer& trainer) {
  std::string bytes;
  for (const auto& named : trainer.parameters()) bytes += bytes_of(named.tensor);
  for (const auto& named : trainer.buffers()) bytes += bytes_of(named.tensor);
  return bytes;
}

/// The rows of these samples.
inline at::Tensor rows_of(const at::Tensor& tensor, std::span<const std::int64_t> samples) {
  return tensor.index_select(0, at::tensor(std::vector(samples.begin(), samples.end())));
}

/// Copies of tensors that go on changing.
inline std::vector<at::Tensor> copies_of(const std::vector<NamedTensor>& tensors) {
  std::vector<at::Tensor> copies;
  copies.reserve(tensors.size());
  for (const auto& named : tensors) copies.push_back(named.tensor.clone());
  return copies;
}
inline std::vector<at::Tensor> copies_of(std::span<const NamedArray> arrays) {
  return copies_of(tensors_of(arrays));
}

/// Keeps the mean gradients of each step, and the weights before it.
class Means : public Observer {
 public:
  bool wants_gradients(const StepPlan&) const override { return true; }
  void on_gradients(Training& training, const StepPlan&,
                    std::span<const NamedArray> of_step) override {
    weights.push_back(copies_of(training.parameters()));
    gradients.push_back(copies_of(of_step));
  }
  std::vector<std::vector<at::Tensor>> gradients;
  std::vector<std::vector<at::Tensor>> weights;
};

/// Keeps the state after each step and each epoch.
class StateKeeper : public Observer {
 public:
  void between_steps(Training& training) override { states.push_back(training.state()); }
  std::vector<State> states;
};

}  // namespace rubato::test
