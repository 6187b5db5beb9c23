#include "python/own_parts.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <sstream>
#include <utility>
#include <vector>

#include <ATen/core/ivalue.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/import.h>

#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>
#include <rubato/model/builtin_models.hpp>
#include <rubato/model/script.hpp>
#include <rubato/run/dense_workload.hpp>
#include <rubato/torch/dataset.hpp>
#include <rubato/torch/losses.hpp>
#include <rubato/torch_run/own_workload.hpp>
#include <rubato/torch_run/torch_workload.hpp>

#include "config/engine.hpp"
#include "run/images.hpp"
#include "torch_run/libtorch_workload.hpp"
#include "torch_run/portable_kernels.hpp"

namespace rubato::python {

namespace {

struct Losses {
  Loss training;
  Loss test{};
};

// A loss with a name, of training with label smoothing, and of the test set without.
struct NamedLoss {
  std::string_view name;
  Losses (*make)(double label_smoothing);
};
constexpr std::array<NamedLoss, 3> kLosses{
    {{"nll",
      [](double spread) {
        return Losses{nll_loss(spread), nll_loss()};
      }},
     {"cross-entropy",
      [](double spread) {
        return Losses{cross_entropy_loss(spread), cross_entropy_loss()};
      }},
     {"mse", [](double spread) {
        if (spread > 0) {
          throw Error("--label-smoothing: mse has no classes; accepted: with nll or cross-entropy");
        }
        return Losses{mse_loss()};
      }}}};

torch::jit::Module loaded(const std::string& bytes) {
  std::istringstream in(bytes);
  return torch::jit::load(in);
}

Loss script_loss(const std::string& bytes) {
  return [module = loaded(bytes)](const Tensors& outputs, const Tensors& targets) {
    // A module is a handle.
    torch::jit::Module handle = module;
    std::vector<c10::IValue> arguments(outputs.begin(), outputs.end());
    arguments.insert(arguments.end(), targets.begin(), targets.end());
    c10::IValue value = handle.forward(std::move(arguments));
    if (value.isTensor()) return std::move(value).toTensor();
    throw Error(fmt::format("the loss returned {}; accepted: a tensor", value.tagKind()));
  };
}

Losses losses_of(const RunConfiguration& configuration, const OwnParts& parts) {
  if (!parts.loss_is_script) {
    std::vector<std::string_view> names;
    for (const NamedLoss& loss : kLosses) names.push_back(loss.name);
    const auto found = std::ranges::find(kLosses, parts.loss, &NamedLoss::name);
    if (found == kLosses.end()) throw Error(unknown_name_message("loss", parts.loss, names));
    return found->make(configuration.label_smoothing);
  }
  if (configuration.label_smoothing > 0) {
    throw Error(
        "--label-smoothing: a loss of your own says itself what is smoothed; accepted: with "
        "nll or cross-entropy");
  }
  return {script_loss(parts.loss)};
}

// The largest class among the targets, and one more.
std::int64_t classes_in(const Tensors& targets) {
  std::int64_t classes = 1;
  for (const at::Tensor& tensor : targets) {
    if (!c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/false) || tensor.numel() == 0) {
      throw Error(
          "a model by its name takes class indices as targets; accepted: integers from 0 on");
    }
    classes = std::max(classes, tensor.max().item<std::int64_t>() + 1);
  }
  return classes;
}

ModelFactory named_model(const std::string& name, const OwnParts& parts) {
  if (parts.inputs.size() != 1 || parts.inputs.front().dim() != 4) {
    throw Error(fmt::format(
        "{} takes images; accepted: one tensor of inputs [samples, channels, height, width]",
        name));
  }
  Tensors targets = parts.targets;
  targets.insert(targets.end(), parts.test_targets.begin(), parts.test_targets.end());
  const at::Tensor& images = parts.inputs.front();
  return builtin_model(name, {.channels = images.size(1),
                              .height = images.size(2),
                              .width = images.size(3),
                              .classes = classes_in(targets)});
}

// As `rubato train` has them.
void take_images(const RunConfiguration& configuration, OwnWorkload& own) {
  const TrainTestImages images = load_images(configuration);
  const PixelStatistics statistics = pixel_statistics(images.train);
  TensorDataset train = to_tensors(images.train, statistics);
  TensorDataset test = to_tensors(images.test, statistics);
  train.fingerprint = fingerprint_of(images.train);
  test.fingerprint = fingerprint_of(images.test);
  own.train = make_dataset(std::move(train));
  own.test = make_dataset(std::move(test));
}

}  // namespace

std::shared_ptr<const Workload> load_workload(const RunConfiguration& configuration,
                                              const OwnParts& parts) {
  if (parts.model.empty() && parts.inputs.empty()) {
    return engine_of(configuration) == Engine::eigen ? dense_workload(configuration)
                                                     : torch_workload(configuration);
  }
  if (configuration.engine == Engine::eigen) {
    throw Error(
        "--engine eigen: a model or data of your own are for libtorch; accepted: --engine auto or "
        "libtorch");
  }
  if (configuration.kernels == Kernels::portable) require_portable_kernels(kernel_facts());
  OwnWorkload own;
  if (parts.inputs.empty()) {
    take_images(configuration, own);
  } else {
    own.train = make_dataset(parts.inputs, parts.targets);
    if (!parts.test_inputs.empty()) own.test = make_dataset(parts.test_inputs, parts.test_targets);
  }
  own.model = parts.model.empty() ? named_model(configuration.model, parts)
                                  : script_factory(loaded(parts.model));
  Losses losses = losses_of(configuration, parts);
  own.loss = std::move(losses.training);
  own.test_loss = std::move(losses.test);
  return own_workload(std::move(own), torch_options(configuration));
}

}  // namespace rubato::python
