// TorchOptimizer gives libtorch's optimizer tensors of its own: the parameters are views of the
// trainer's arrays, and the gradients are views of one buffer, which step() fills with the scaled
// and clipped sum on all threads. A parameter that no minibatch has reached has no gradient, so
// libtorch leaves it alone. A state contains the archive that libtorch writes; as this archive
// names parameters by address, visitors that compare states are shown its entries under numbers
// instead. TorchTrainer adds data sets of tensors and reserved OpenBLAS buffers to Trainer, and
// passes evaluation and prediction on to its TorchObjective.

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "base/core/check.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "base/machine/kernels.hpp"
#include "libtorch/torch/objective/torch_objective.hpp"
#include "loop/data/sample_set.hpp"
#include "loop/optim/ranges.hpp"

namespace rubato {

namespace {

constexpr std::string_view kName = "optimizer.torch";

using Names = std::map<std::string, std::string>;

// Returns a name for each address by which libtorch's archives of optimizers name a parameter: with
// "0x" in version 1.13, and decimal in later ones.
Names names_of_parameters(torch::optim::Optimizer& optimizer) {
  Names names;
  std::size_t number = 0;
  for (const torch::optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    for (const at::Tensor& tensor : group.params()) {
      const void* const address = tensor.unsafeGetTensorImpl();
      const std::string name = fmt::format("parameter {}", number++);
      names[fmt::to_string(fmt::ptr(address))] = name;
      names[fmt::to_string(reinterpret_cast<std::uintptr_t>(address))] = name;
    }
  }
  return names;
}

const std::string& renamed(const Names& names, const std::string& name) {
  const auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

void show_tensor(StateVisitor& state, const std::string& name, const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  StateArray bytes{.type = ElementType::u8,
                   .shape = {static_cast<std::int64_t>(dense.nbytes())},
                   .bytes = {static_cast<const char*>(dense.data_ptr()), dense.nbytes()}};
  state.array(name, bytes);
}

// Shows the entries of an optimizer's archive. Its bytes would not do: they have addresses of
// tensors, in the order of a hash table. The options of its groups are left out: loading leaves
// them alone, and each step sets its rate.
void show_archive(StateVisitor state, torch::serialize::InputArchive& archive, const Names& names) {
  for (const std::string& key : archive.keys()) {
    if (key == "param_groups") continue;
    const std::string& name = renamed(names, key);
    torch::serialize::InputArchive inner;
    if (archive.try_read(key, inner)) {
      show_archive(state.part(name), inner, names);
      continue;
    }
    c10::IValue value;
    archive.read(key, value);
    if (value.isTensor()) {
      show_tensor(state, name, value.toTensor());
    } else if (value.isTensorList()) {
      std::size_t number = 0;
      for (const at::Tensor& tensor : value.toTensorVector()) {
        show_tensor(state, fmt::format("{}/{}", name, number++), tensor);
      }
    } else {
      std::ostringstream out;
      out << value;
      std::string text = value.isString() ? renamed(names, value.toStringRef()) : out.str();
      state.text(name, text);
    }
  }
}

}  // namespace

template <class T>
TorchOptimizer<T>::TorchOptimizer(ParameterLayout layout, const std::vector<TrainedArray>& trained,
                                  const TorchOptimizerMaker& make, std::vector<GroupOptions> groups)
    : layout_(std::move(layout)),
      groups_(std::move(groups)),
      gradient_(at::zeros({static_cast<std::int64_t>(layout_.size())},
                          c10::CppTypeToScalarType<T>::value)) {
  if (trained.size() != layout_.layers()) {
    throw_error("an optimizer for {} tensors with a layout of {}; accepted: the same number",
                trained.size(), layout_.layers());
  }
  // The optimizer has tensors of its own on the shared memory: their gradients are not the
  // replicas'.
  optimizer_ =
      make(vector_of<torch::optim::OptimizerParamGroup>(trained, [&](const TrainedArray& of) {
        return std::vector{at::from_blob(of.array.data, of.array.shape, gradient_.options())};
      }));
  if (optimizer_ == nullptr || optimizer_->param_groups().size() != layout_.layers()) {
    throw_error("an optimizer of libtorch must keep the {} parameter groups it is made for",
                layout_.layers());
  }
  try {
    static_cast<void>(optimizer_->param_groups().front().options().get_lr());
  } catch (const std::exception&) {
    throw Error("this optimizer of libtorch has no learning rate that can be set");
  }
}

template <class T>
void TorchOptimizer<T>::step(const Update<T>& update, Workers& workers) {
  std::int64_t layer_begin = 0;
  for_each_layer(layout_.layers(), update.unreached, [&](std::size_t layer, bool reached) {
    const GroupOptions group = group_of(groups_, layout_.layer_groups[layer]);
    const LayerRates of_layer = rates_of_layer(layer, update.rates, layout_, group, 0, 0);
    torch::optim::OptimizerParamGroup& of_tensor = optimizer_->param_groups()[layer];
    of_tensor.options().set_lr(of_layer.rate);
    at::Tensor& parameter = of_tensor.params().front();
    // libtorch skips a parameter without a gradient.
    if (parameter.grad().defined() != reached) {
      parameter.mutable_grad() =
          reached ? gradient_.narrow(0, layer_begin, parameter.numel()).view(parameter.sizes())
                  : at::Tensor();
    }
    layer_begin = static_cast<std::int64_t>(layout_.layer_ends[layer]);
  });
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
void TorchOptimizer<T>::visit_state(StateVisitor& state) {
  StateArray archived;
  if (!state.loading()) {
    torch::serialize::OutputArchive archive;
    optimizer_->save(archive);
    std::ostringstream out;
    archive.save_to(out);
    std::string bytes = std::move(out).str();
    const auto size = static_cast<std::int64_t>(bytes.size());
    archived = {.type = ElementType::u8, .shape = {size}, .bytes = std::move(bytes)};
  }
  if (state.showing()) {
    torch::serialize::InputArchive archive;
    archive.load_from(archived.bytes.data(), archived.bytes.size());
    return show_archive(state.part(kName), archive, names_of_parameters(*optimizer_));
  }
  state.array(kName, archived);
  if (!state.loading()) return;
  try {
    torch::serialize::InputArchive archive;
    archive.load_from(archived.bytes.data(), archived.bytes.size());
    optimizer_->load(archive);
  } catch (const std::exception& error) {
    throw_error("the state's '{}' is of another optimizer: {}", kName, error.what());
  }
}

template class TorchOptimizer<float>;
template class TorchOptimizer<double>;

namespace {

template <class T>
auto maker_for(const TorchOptimizerMaker& make) {
  return [make](const OptimizerParts& parts) -> std::unique_ptr<FlatOptimizer<T>> {
    return std::make_unique<TorchOptimizer<T>>(parts.layout, parts.trained, make, parts.groups);
  };
}

}  // namespace

OwnOptimizer torch_optimizer(const TorchOptimizerMaker& make) {
  return {.of_float = maker_for<float>(make), .of_double = maker_for<double>(make)};
}

namespace {

TorchObjective& own_objective(const Trainer& trainer) {
  return dynamic_cast<TorchObjective&>(trainer.objective());
}

std::shared_ptr<const Dataset> checked(TensorDataset dataset, std::string_view name) {
  require_valid(dataset, name);
  return make_dataset(std::move(dataset));
}

// Probabilities are checked here, too, since the loss knows only their places in a minibatch.
std::shared_ptr<const Dataset> checked_for(const Loss& loss, TensorDataset dataset,
                                           std::string_view name) {
  const at::Tensor targets = dataset.targets;
  std::shared_ptr<const Dataset> made = checked(std::move(dataset), name);
  if (loss.takes_probabilities() && targets.is_floating_point() && targets.dim() == 2) {
    const at::Tensor dense = targets.contiguous();
    const NamedArray array = array_of({"targets", dense});
    const auto bytes = static_cast<std::size_t>(targets.size(1)) * size_of(array.type);
    const SampleRows rows(
        array.type, {targets.size(1)}, bytes,
        {{.begin = static_cast<const char*>(array.data), .count = targets.size(0)}}, nullptr);
    require_probabilities(rows, fmt::format("{}: the targets", name));
  }
  return made;
}

}  // namespace

TorchTrainer::TorchTrainer(const ModelFactory& model, Loss loss, TensorDataset train, Trace trace,
                           const TrainOptions& options, TorchOptions torch)
    : TorchTrainer(model, std::move(loss), std::move(train),
                   std::make_unique<TraceSource>(std::move(trace)), options, std::move(torch)) {}

TorchTrainer::TorchTrainer(const ModelFactory& model, Loss loss, TensorDataset train,
                           std::unique_ptr<StepSource> source, const TrainOptions& options,
                           TorchOptions torch)
    : TorchTrainer(model, loss, checked_for(loss, std::move(train), "training data"),
                   std::move(source), options, std::move(torch)) {}

TorchTrainer::TorchTrainer(const ModelFactory& model, Loss loss,
                           std::shared_ptr<const Dataset> train, Trace trace,
                           const TrainOptions& options, TorchOptions torch)
    : TorchTrainer(model, std::move(loss), std::move(train),
                   std::make_unique<TraceSource>(std::move(trace)), options, std::move(torch)) {}

TorchTrainer::TorchTrainer(const ModelFactory& model, Loss loss,
                           std::shared_ptr<const Dataset> train, std::unique_ptr<StepSource> source,
                           const TrainOptions& options, TorchOptions torch)
    : Trainer(make_torch_objective({.model = model,
                                    .loss = std::move(loss),
                                    .train = std::move(train),
                                    .options = std::move(torch),
                                    .seed = options.seed}),
              std::move(source), options) {
  // The buffers are reserved before the first step, in which not every thread may compute a
  // product.
  reserve_openblas_buffers(workers().threads());
}

void TorchTrainer::set_test(TensorDataset test, Loss loss) {
  set_test(checked(std::move(test), "test data"), std::move(loss));
}
void TorchTrainer::set_test(std::shared_ptr<const Dataset> test, Loss loss) {
  own_objective(*this).set_test(std::move(test), std::move(loss));
}

Evaluation TorchTrainer::evaluate(const TensorDataset& dataset) {
  return evaluate(*checked(dataset, "data to evaluate on"));
}
Evaluation TorchTrainer::evaluate(const Dataset& dataset) {
  return own_objective(*this).evaluate(dataset, workers(), evaluation_options(options()), "");
}

Tensors TorchTrainer::predict(const TensorDataset& dataset) {
  return predict(*checked(dataset, "data to predict"));
}
Tensors TorchTrainer::predict(const Dataset& dataset) {
  return own_objective(*this).predict(dataset, workers());
}

const std::vector<NamedTensor>& TorchTrainer::parameters() const {
  return own_objective(*this).state().parameters();
}
const std::vector<NamedTensor>& TorchTrainer::buffers() const {
  return own_objective(*this).state().buffers();
}
const TorchOptions& TorchTrainer::torch_options() const {
  return own_objective(*this).options();
}

Evaluation evaluate(const Training& training, const TensorDataset& dataset) {
  return evaluate(training, *checked(dataset, "data to evaluate on"));
}
Evaluation evaluate(const Training& training, const Dataset& dataset) {
  auto* const objective = dynamic_cast<TorchObjective*>(&training.objective());
  if (objective == nullptr) {
    throw Error(
        "tensors are evaluated by a model of libtorch; accepted: a TorchTrainer's training");
  }
  return objective->evaluate(dataset, training.workers(), evaluation_options(training.options()),
                             "");
}

}  // namespace rubato
