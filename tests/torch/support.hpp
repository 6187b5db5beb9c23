#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rubato/torch/arrays.hpp>
#include <rubato/torch/torch_trainer.hpp>

#include "data/digits.hpp"

namespace rubato::test {

/// The options of a training and of its model, to be changed side by side.
struct AllOptions : TrainOptions {
  AllOptions() = default;
  AllOptions(TrainOptions options)  // NOLINT(google-explicit-constructor): with the model's default
      : TrainOptions(std::move(options)) {}
  TorchOptions torch{};
};

/// A trace of these batch sizes.
inline Trace trace_of(const std::vector<std::int64_t>& batch_sizes,
                      TraceEnd end = TraceEnd::error) {
  std::vector<TraceStep> steps;
  steps.reserve(batch_sizes.size());
  for (const std::int64_t batch_size : batch_sizes) steps.push_back({batch_size, std::nullopt});
  return Trace(std::move(steps), end, "test trace");
}

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

/// Keeps every record, and calls `on_each` after each step.
class Recorder : public Observer {
 public:
  explicit Recorder(std::function<void(Training&, const StepRecord&)> on_each = {})
      : on_each_(std::move(on_each)) {}

  void on_epoch_begin(Training&, const EpochStart& epoch) override { begun.push_back(epoch); }
  void on_step(Training& training, const StepRecord& step) override {
    steps.push_back(step);
    if (on_each_) on_each_(training, step);
  }
  void on_epoch(Training&, const EpochRecord& epoch) override { epochs.push_back(epoch); }

  std::vector<EpochStart> begun;
  std::vector<StepRecord> steps;
  std::vector<EpochRecord> epochs;

 private:
  std::function<void(Training&, const StepRecord&)> on_each_;
};

/// Keeps the state after each step and each epoch.
class StateKeeper : public Observer {
 public:
  void between_steps(Training& training) override { states.push_back(training.state()); }
  std::vector<State> states;
};

}  // namespace rubato::test
