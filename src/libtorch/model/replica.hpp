#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rubato/libtorch/model.hpp>

#include "shared_state.hpp"

namespace rubato {

/// An instance of the model that computes for whichever core its thread runs.
///
/// Its trained and frozen parameters are the shared ones, so an update is seen without a broadcast.
/// Its buffers are its own, and are set to the shared ones before each substep: the result of a
/// substep depends only on the shared state and the minibatch, not on the replica that computes it,
/// and memory grows with threads, not with cores (docs/adr/0003).
///
/// Not to be used by two threads at once. The SharedState must outlive it.
class Replica {
 public:
  /// Redirects the tensors of `model`. Throws Error if their shapes are not those of the model that
  /// `shared` was made from.
  Replica(Model model, const SharedState& shared);

  /// Begins a substep: sets the buffers to the shared ones, and makes backward add to `gradients`,
  /// which are views by the parameter layout.
  void begin(std::span<const at::Tensor> gradients);
  /// Begins a substep with the buffers as the last one left them.
  void continue_with(std::span<const at::Tensor> gradients);
  /// Called after backward: throws Error if a gradient is no longer where begin() put it.
  void check_gradients(std::span<const at::Tensor> gradients) const;
  /// Called before an evaluation: sets the buffers to the shared ones.
  void load_buffers();

  void set_training(bool training) { model_.set_training(training); }
  /// Throws Error if forward() writes to a parameter, which other replicas read, or gives a buffer
  /// other memory.
  [[nodiscard]] Tensors forward(const Tensors& inputs);
  [[nodiscard]] at::Tensor forward(const at::Tensor& input) {
    return only_tensor(forward(Tensors{input}), "outputs");
  }

  /// The buffers as the last forward left them, laid out as SharedState::flat_buffers().
  [[nodiscard]] const at::Tensor& flat_buffers() const { return flat_buffers_; }
  [[nodiscard]] const std::vector<NamedTensor>& counters() const { return tensors_.counters; }

  /// Address and size of a tensor's elements.
  struct Place {
    const void* data = nullptr;
    std::int64_t elements = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };

 private:
  void check_written() const;

  Model model_;
  const SharedState* shared_;
  SortedTensors tensors_;
  at::Tensor flat_buffers_;
  // Number of writes to each parameter at construction, the trained ones first.
  std::vector<std::int64_t> written_;
  // Places of the buffers, followed by those of the counters.
  std::vector<Place> places_;
};

}  // namespace rubato
