#include "replica.hpp"

#include <utility>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"

namespace rubato {

namespace {

// Makes `tensors` views of the shared ones.
void redirect(const std::vector<NamedTensor>& tensors, const std::vector<at::Tensor>& views) {
  if (tensors.size() != views.size()) {
    throw_error("the model factory made one instance with {} tensors and one with {}", views.size(),
                tensors.size());
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].tensor.sizes() != views[i].sizes()) {
      throw_error("the model factory made '{}' in two shapes", tensors[i].name);
    }
    tensors[i].tensor.set_data(views[i]);
  }
}

Replica::Place place_of(const at::Tensor& tensor) {
  return {.data = tensor.data_ptr(), .elements = tensor.numel()};
}

}  // namespace

Replica::Replica(Model model, const SharedState& shared)
    : model_(std::move(model)), shared_(&shared), tensors_(sort_tensors(model_)) {
  redirect(tensors_.trained, shared.parameter_layout().views(shared.flat_parameters()));
  redirect(tensors_.frozen, shared.frozen());
  flat_buffers_ = shared.flat_buffers().clone();
  redirect(tensors_.buffers, shared.buffer_layout().views(flat_buffers_));
  redirect(tensors_.counters,
           vector_of(shared.counters(), [](const at::Tensor& counter) { return counter.clone(); }));
  for (const auto* shared_by_all : {&tensors_.trained, &tensors_.frozen}) {
    for (const NamedTensor& named : *shared_by_all) written_.push_back(named.tensor._version());
  }
  for (const auto* own : {&tensors_.buffers, &tensors_.counters}) {
    for (const NamedTensor& named : *own) places_.push_back(place_of(named.tensor));
  }
  set_training(true);
}

void Replica::begin(std::span<const at::Tensor> gradients) {
  load_buffers();
  continue_with(gradients);
}

void Replica::continue_with(std::span<const at::Tensor> gradients) {
  for (std::size_t i = 0; i < tensors_.trained.size(); ++i) {
    tensors_.trained[i].tensor.mutable_grad() = gradients[i];
  }
}

void Replica::check_gradients(std::span<const at::Tensor> gradients) const {
  for (std::size_t i = 0; i < tensors_.trained.size(); ++i) {
    const at::Tensor& gradient = tensors_.trained[i].tensor.grad();
    if (gradient.defined() && place_of(gradient) == place_of(gradients[i])) continue;
    throw_error(
        "the gradient of parameter '{}' has been replaced; accepted: a model and a loss that leave "
        "gradients to training (no backward() with create_graph)",
        tensors_.trained[i].name);
  }
}

// Other threads read the parameters meanwhile, and the buffers are read at their original places.
void Replica::check_written() const {
  std::size_t i = 0;
  for (const auto* shared_by_all : {&tensors_.trained, &tensors_.frozen}) {
    for (const NamedTensor& named : *shared_by_all) {
      if (named.tensor._version() == written_[i++]) continue;
      throw_error(
          "forward() writes to parameter '{}', which all minibatches of a step share; accepted: a "
          "model that writes to buffers alone (no max_norm)",
          named.name);
    }
  }
  i = 0;
  for (const auto* own : {&tensors_.buffers, &tensors_.counters}) {
    for (const NamedTensor& named : *own) {
      if (place_of(named.tensor) == places_[i++]) continue;
      throw_error(
          "forward() gives buffer '{}' other memory; accepted: buffers that keep their shape and "
          "are written to in place",
          named.name);
    }
  }
}

Tensors Replica::forward(const Tensors& inputs) {
  Tensors outputs = model_.forward(inputs);
  check_written();
  return outputs;
}

void Replica::load_buffers() {
  const at::NoGradGuard no_grad;
  if (flat_buffers_.numel() > 0) flat_buffers_.copy_(shared_->flat_buffers());
  for (std::size_t i = 0; i < tensors_.counters.size(); ++i) {
    tensors_.counters[i].tensor.copy_(shared_->counters()[i]);
  }
}

}  // namespace rubato
