// LibtorchWorkload makes trainers from parts that somebody else has put together:
// torch_workload.cpp by a configuration, or a program (own_workload()). make_trainer() makes a
// trainer of a TorchScript file from a factory whose instances share the module's parameters, and
// then releases their values; a further trainer reads the file again. Sources of weights and model
// files read the trainer's arrays when they are used, not when they are made. Losses of numbers
// (mse, bce) get a class as a row of zeros with a single 1.

#include "libtorch_workload.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/libtorch/workload.hpp>

#include "base/core/check.hpp"
#include "base/core/throw_error.hpp"
#include "libtorch/model/script.hpp"
#include "libtorch/model/shared_state.hpp"
#include "libtorch/torch/guards.hpp"
#include "libtorch/torch/objective/torch_objective.hpp"
#include "libtorch/torch/sample_tensors.hpp"
#include "runs/config/values/loss_choice.hpp"

namespace rubato {

void ScriptModel::begin_with(Begin begin) {
  begin_ = std::move(begin);
  begin_(make_model(module_));
}

ModelFactory ScriptModel::factory() {
  if (!read_) return script_factory(module_);
  if (std::exchange(forgotten_, false)) {
    module_ = read_();
    if (begin_) begin_(make_model(module_));
  }
  return sharing_script_factory(module_);
}

void ScriptModel::forget() {
  if (!read_) return;
  forget_parameters(module_);
  forgotten_ = true;
}

namespace {

// Converts targets to numbers of the outputs' type and shape: a class becomes a row of zeros with a
// single 1.
at::Tensor numbers_for(const at::Tensor& output, const at::Tensor& target) {
  const bool classes =
      !target.is_floating_point() && output.dim() == target.dim() + 1 && output.size(-1) > 1;
  if (classes && target.ge(output.size(-1)).any().item<bool>()) {
    throw_error("{} outputs are too few for class {}; accepted: an output for each class",
                output.size(-1), target.max().item<std::int64_t>());
  }
  const at::Tensor numbers = classes ? at::one_hot(target, output.size(-1)) : target;
  const at::Tensor typed = numbers.to(output.scalar_type());
  return typed.numel() == output.numel() ? typed.view_as(output) : typed;
}

Loss on_numbers(const Loss& loss) {
  Loss on_them([loss](const at::Tensor& output, const at::Tensor& target) {
    return loss(output, numbers_for(output, target));
  });
  return std::move(on_them).with_threshold(loss.threshold()).with_check(loss.check());
}

}  // namespace

Loss run_loss(const Parsed<LossChoice>& loss, double label_smoothing, std::string_view script) {
  if (const auto& file = loss->script) {
    return script_loss(read_script(script, fmt::format("--loss: {}", file->string())));
  }
  const std::string_view name = loss->name;
  const ClassWeights classes{.ignore = loss->ignore, .weights = loss->class_weights};
  if (name == "cross-entropy") return cross_entropy_loss(classes, label_smoothing);
  if (name == "nll") return nll_loss(classes, label_smoothing);
  if (name == "mse") return on_numbers(mse_loss());
  RUBATO_CHECK(name == "bce", "the configuration accepts known losses only");
  return on_numbers(bce_loss());
}

std::shared_ptr<const Workload> own_workload(OwnWorkload own, const TorchOptions& options) {
  if (!own.model) throw Error("a workload without a model; accepted: a ModelFactory");
  if (!own.loss) throw Error("a workload without a loss; accepted: one such as nll_loss()");
  if (!own.train) throw Error("a workload without training data; accepted: a Dataset");
  if (own.description.empty()) {
    own.description = fmt::format("own model: {} training and {} test samples", own.train->size(),
                                  own.test ? own.test->size() : 0);
  }
  return libtorch_workload({.description = std::move(own.description),
                            .model = std::move(own.model),
                            .loss = std::move(own.loss),
                            .test_loss = std::move(own.test_loss),
                            .train = std::move(own.train),
                            .test = std::move(own.test),
                            .options = options});
}

namespace {

class LibtorchWorkload final : public Workload {
 public:
  explicit LibtorchWorkload(LibtorchParts parts) : parts_(std::move(parts)) {}

  std::string description() const override { return parts_.description; }
  std::int64_t samples() const override { return parts_.train->size(); }
  Sampler sampler() const override { return parts_.sampler; }
  bool has_real_targets() const override {
    const Tensors targets = parts_.train->range(0, 1).targets;
    return !targets.empty() && targets.front().is_floating_point() &&
           !parts_.loss.takes_probabilities();
  }
  std::span<const WorkloadFile> files() const override { return parts_.files; }

  void require_suits(const RunConfiguration& run) const override {
    if (parts_.known) require_data(run, *parts_.known);
  }
  void complete() const override {
    static_cast<void>(parts_.train->fingerprint());
    if (parts_.test) static_cast<void>(parts_.test->fingerprint());
  }
  std::string data_record() const override { return parts_.data_record; }
  std::vector<std::string> class_names() const override { return parts_.class_names; }
  std::vector<std::string> sample_names() const override { return parts_.sample_names; }

  EngineFacts engine() const override {
    const Versions of = versions();
    return {.engine = std::string(choice_name(kEngines, Engine::libtorch)),
            .kernels = kernel_facts(),
            .versions = {{"torch", of.torch}, {"onetbb", of.onetbb}, {"blas", of.blas}}};
  }
  std::string warning() const override {
    if (has_fast_blas()) return {};
    return "the BLAS in use is not known to be fast and may make training ten times slower\n"
           "install an OpenBLAS (Debian: libopenblas0) or see update-alternatives";
  }

  double bytes_per_target() const override { return parts_.bytes_per_target; }
  std::int64_t gradient_bytes() const override {
    if (parts_.gradient_bytes) return *parts_.gradient_bytes;
    // The initial values of this instance are drawn for nothing, so the generator is restored.
    const GeneratorKeeper generator;
    return rubato::gradient_bytes(parts_.model());
  }

  Trainer make_trainer(std::unique_ptr<StepSource> steps,
                       const TrainOptions& options) const override {
    TorchTrainer trainer(parts_.script ? parts_.script->factory() : parts_.model, parts_.loss,
                         parts_.train, std::move(steps), options, parts_.options);
    if (parts_.script) parts_.script->forget();
    if (parts_.test) trainer.set_test(parts_.test, parts_.test_loss);
    return trainer;
  }

  std::string_view weights_suffix() const override { return "pt"; }
  ByteSource weights(std::span<const NamedArray> parameters,
                     std::span<const NamedArray> buffers) const override {
    return [parameters, buffers, transient = parts_.transient](const ByteSink& sink) {
      std::vector<NamedTensor> kept = tensors_of(buffers);
      std::erase_if(kept, [&transient](const NamedTensor& buffer) {
        return std::ranges::find(transient, buffer.name) != transient.end();
      });
      stream_pickled_weights(tensors_of(parameters), kept, sink);
    };
  }
  ByteSource model_file(std::span<const NamedArray> parameters,
                        std::span<const NamedArray> buffers) const override {
    if (!parts_.script) return {};
    return [script = parts_.script, parameters, buffers](const ByteSink& sink) {
      stream_script(script->module(), tensors_of(parameters), tensors_of(buffers), sink);
    };
  }

  ArrayCopies predict(const Trainer& trainer, Prediction what) const override {
    if (!parts_.test) {
      throw Error(
          "there is no test set; accepted: with --validation, --data of samples to predict, or "
          "data with one");
    }
    auto& objective = dynamic_cast<TorchObjective&>(trainer.objective());
    const Tensors outputs = objective.predict(*parts_.test, trainer.workers());
    std::vector<NamedTensor> named;
    if (what == Prediction::classes) {
      named.push_back({"class", classes_of(outputs)});
    } else if (outputs.size() == 1) {
      named.push_back({"output", outputs.front().contiguous()});
    } else {
      for (const at::Tensor& output : outputs) {
        named.push_back({fmt::format("output{}", named.size()), output.contiguous()});
      }
    }
    return ArrayCopies(arrays_of(named));
  }

 private:
  // The classes as int64, in the shape of the targets.
  [[nodiscard]] at::Tensor classes_of(const Tensors& outputs) const {
    const Tensors targets = parts_.test->range(0, 1).targets;
    if (outputs.size() == 1 && !targets.empty()) {
      const at::Tensor& first = targets.front();
      std::vector<std::int64_t> shape = first.sizes().vec();
      shape.front() = parts_.test->size();
      const Loss& loss = parts_.test_loss ? parts_.test_loss : parts_.loss;
      const at::Tensor like = first.expand(shape);
      const auto of_probabilities =
          loss.takes_probabilities() ? most_probable(outputs.front(), like) : std::nullopt;
      if (of_probabilities) {
        shape.erase(shape.begin() + 1);
        return of_probabilities->outputs.argmax(1).view(shape);
      }
      // Only the type and the shape of the targets matter.
      if (const auto rows = class_scores(outputs.front(), like, loss.threshold())) {
        if (outputs.front().numel() == rows->targets.numel() && parts_.classes > 2) {
          throw_error("one output does not tell {} classes apart; accepted: the outputs themselves",
                      parts_.classes);
        }
        return rows->outputs.argmax(1).view(shape);
      }
    }
    throw Error(
        "the outputs of the model are not scores of classes; accepted: the outputs themselves");
  }

  LibtorchParts parts_;
};

}  // namespace

std::int64_t gradient_bytes(const Model& model) {
  std::int64_t bytes = 0;
  for (const NamedTensor& parameter : sort_tensors(model).trained) {
    bytes += static_cast<std::int64_t>(parameter.tensor.nbytes());
  }
  return bytes;
}

std::shared_ptr<const Workload> libtorch_workload(LibtorchParts parts) {
  return std::make_shared<LibtorchWorkload>(std::move(parts));
}

EngineFacts::Facts kernel_facts() {
  const KernelsInUse kernels = kernels_in_use();
  return {{"OpenBLAS", kernels.openblas}, {"ATen", kernels.aten}, {"oneDNN", kernels.onednn}};
}

}  // namespace rubato
