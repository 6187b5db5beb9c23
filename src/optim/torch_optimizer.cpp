#include <algorithm>
#include <sstream>
#include <utility>

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <rubato/core/check.hpp>
#include <rubato/core/error.hpp>
#include <rubato/optim/torch_optimizer.hpp>

#include "grouped_sgd.hpp"

namespace rubato {

namespace {

constexpr std::string_view kName = "optimizer.torch";

}  // namespace

template <class T>
TorchOptimizer<T>::TorchOptimizer(ParameterLayout layout, const SharedState& shared,
                                  const TorchOptimizerMaker& make, std::vector<GroupOptions> groups)
    : layout_(std::move(layout)),
      groups_(std::move(groups)),
      gradient_(at::zeros_like(shared.flat_parameters())) {
  // Tensors of the optimizer's own, on the shared memory: their gradients are not the replicas'.
  std::vector<at::Tensor> parameters = shared.parameter_layout().views(shared.flat_parameters());
  const std::vector<at::Tensor> gradients = shared.parameter_layout().views(gradient_);
  RUBATO_CHECK(parameters.size() == layout_.layers(), "the layout has every tensor");
  std::vector<torch::optim::OptimizerParamGroup> of_tensors;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i] = parameters[i].detach();
    parameters[i].mutable_grad() = gradients[i];
    of_tensors.emplace_back(std::vector<at::Tensor>{parameters[i]});
  }
  optimizer_ = make(std::move(of_tensors));
  if (optimizer_ == nullptr || optimizer_->param_groups().size() != layout_.layers()) {
    throw Error(
        fmt::format("an optimizer of libtorch must keep the {} parameter groups it is made "
                    "for",
                    layout_.layers()));
  }
  try {
    static_cast<void>(optimizer_->param_groups().front().options().get_lr());
  } catch (const std::exception&) {
    throw Error("this optimizer of libtorch has no learning rate that can be set");
  }
}

template <class T>
void TorchOptimizer<T>::step(const Update<T>& update, Workers& workers) {
  for (std::size_t layer = 0; layer < layout_.layers(); ++layer) {
    const GroupOptions group = group_of(groups_, layout_.layer_groups[layer]);
    const LayerRates of_layer = rates_of_layer(layer, update.rates, layout_, group, 0, 0);
    optimizer_->param_groups()[layer].options().set_lr(of_layer.rate);
  }
  T* const gradient = gradient_.data_ptr<T>();
  workers.for_each_range(update.parameters.size(), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      gradient[i] =
          std::clamp(update.gradient_factor * update.gradient_sum[i], -update.clip, update.clip);
    }
  });
  optimizer_->step();
}

template <class T>
void TorchOptimizer<T>::save(State& state) const {
  torch::serialize::OutputArchive archive;
  optimizer_->save(archive);
  std::ostringstream out;
  archive.save_to(out);
  std::string bytes = std::move(out).str();
  const auto size = static_cast<std::int64_t>(bytes.size());
  state.put_array(kName, {.type = ElementType::u8, .shape = {size}, .bytes = std::move(bytes)});
}

template <class T>
void TorchOptimizer<T>::load(const State& state) {
  const std::string& bytes = state.array(kName).bytes;
  try {
    torch::serialize::InputArchive archive;
    archive.load_from(bytes.data(), bytes.size());
    optimizer_->load(archive);
  } catch (const std::exception& error) {
    throw Error(fmt::format("the state's '{}' is of another optimizer: {}", kName, error.what()));
  }
}

template class TorchOptimizer<float>;
template class TorchOptimizer<double>;

}  // namespace rubato
