#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/core/spec.hpp>
#include <rubato/model/builtin_models.hpp>
#include <rubato/model/script.hpp>
#include <rubato/torch/arrays.hpp>
#include <rubato/torch/dataset.hpp>
#include <rubato/torch/torch_trainer.hpp>
#include <rubato/torch_run/torch_workload.hpp>

#include "config/engine.hpp"
#include "config/loss.hpp"
#include "config/model_source.hpp"
#include "core/file.hpp"
#include "core/memory.hpp"
#include "model/shared_state.hpp"
#include "run/run_data.hpp"
#include "torch/class_rows.hpp"
#include "torch/sample_dataset.hpp"
#include "torch/torch_objective.hpp"
#include "torch_run/libtorch_workload.hpp"
#include "torch_run/portable_kernels.hpp"
#include "torch_run/run_loss.hpp"
#include "torch_run/workload_parts.hpp"

namespace rubato {

namespace {

bool is_transformer(const std::string& model) {
  return Spec(model).name() == "transformer";
}

// Samples as images, as built-in models take them. Throws Error for what they are not made for.
ImageShape image_shape(const RunConfiguration& configuration, const DataSets& data) {
  require_one_target(configuration, data);
  const std::vector<std::int64_t>& shape = data.train.inputs.shape();
  constexpr std::size_t kMostDimensions = 3;
  if (shape.size() > kMostDimensions) {
    throw Error(
        fmt::format("--model {}: samples of {} dimensions; accepted: channels x height x width, "
                    "height x width, or features",
                    configuration.model, shape.size()));
  }
  const DataShape of = shape_of(data);
  return {.channels = of.channels, .height = of.height, .width = of.width, .classes = data.classes};
}

// Of samples that are sequences of tokens.
ModelFactory model_of_sequences(const RunConfiguration& configuration, const DataSets& data) {
  if (data.vocabulary == 0) {
    throw Error(
        fmt::format("--model {}: the tokens of {} are no sequences with a class for each token; "
                    "accepted: y of the shape of x, and tokens from 0 to 999999",
                    configuration.model, configuration.data));
  }
  return sequence_model(configuration.model, {.tokens = data.train.inputs.elements(),
                                              .vocabulary = data.vocabulary,
                                              .classes = data.classes});
}

ModelFactory model_of_images(const RunConfiguration& configuration, const DataSets& data,
                             const ImageShape& shape) {
  if (data.classes > 0) return builtin_model(configuration.model, shape);
  if (Spec(configuration.model).name() != "mlp") {
    throw Error(
        fmt::format("--model {}: it tells classes apart, and the targets of {} are real numbers; "
                    "accepted: mlp or script:FILE",
                    configuration.model, configuration.data));
  }
  return regression_model(configuration.model, data.train.inputs.elements(),
                          data.train.targets.elements());
}

class TorchWorkload final : public LibtorchWorkload {
 public:
  TorchWorkload(const RunConfiguration& configuration, WorkloadParts parts)
      : TorchWorkload(configuration, parts,
                      parts.data ? prepared(configuration, std::move(*parts.data))
                                 : load_data(configuration)) {}

  std::string description() const override { return description_; }
  std::int64_t samples() const override { return train_->size(); }

  std::int64_t gradient_bytes() const override { return gradient_bytes_of(model_); }

  Trainer make_trainer(std::unique_ptr<StepSource> steps,
                       const TrainOptions& options) const override {
    TorchTrainer trainer(model_, loss_, train_, std::move(steps), options, options_);
    if (test_) trainer.set_test(test_, test_loss_);
    return trainer;
  }

  std::optional<std::string> model_file(std::span<const NamedArray> parameters,
                                        std::span<const NamedArray> buffers) const override {
    if (!script_) return std::nullopt;
    return script_bytes(*script_, tensors_of(parameters), tensors_of(buffers));
  }
  std::span<const WorkloadFile> files() const override { return files_; }

  ArrayCopies predict(const Trainer& trainer, Prediction what) const override {
    if (!test_) throw Error("there is no test set; accepted: with --validation, or data with one");
    auto& objective = dynamic_cast<TorchObjective&>(trainer.objective());
    const Tensors outputs = objective.predict(*test_, trainer.workers());
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
  // Of `parts`, the data are in `data`.
  TorchWorkload(const RunConfiguration& configuration, const WorkloadParts& parts,
                const DataSets& data)
      : description_(describe(configuration, data)),
        script_(parts.model),
        options_(torch_options(configuration)) {
    SampleTensors tensors = load_model(configuration, data);
    load_initial_weights(configuration);
    load_loss(configuration, data, parts.loss);
    // A model in float64 takes float64.
    const at::ScalarType type = script_ ? SharedState(model_()).type() : at::kFloat;
    if (tensors.input_type != at::kLong) tensors.input_type = type;
    tensors.real_target_type = type;
    // What is larger is read in every step from where it lies.
    constexpr double kShare = 0.25;
    const double room = kShare * memory_limit().bytes;
    train_ = make_dataset(data, data.train, tensors, room);
    if (data.test) test_ = make_dataset(data, *data.test, tensors, room);
  }

  // int64, of the targets' shape.
  [[nodiscard]] at::Tensor classes_of(const Tensors& outputs) const {
    if (outputs.size() == 1) {
      const at::Tensor first = test_->range(0, 1).targets.front();
      std::vector<std::int64_t> shape = first.sizes().vec();
      shape.front() = test_->size();
      // Only type and shape matter.
      if (const auto rows = class_rows(outputs.front(), first.expand(shape))) {
        return rows->outputs.argmax(1).view(shape);
      }
    }
    throw Error("the outputs of the model are of no classes; accepted: the outputs themselves");
  }

  // The bytes of the file that an option names, which are kept.
  const std::string& read(const char* option, const std::filesystem::path& file) {
    files_.push_back(
        {.option = option, .extension = file.extension().string(), .bytes = read_file(file)});
    return files_.back().bytes;
  }

  // Returns how it takes its samples.
  SampleTensors load_model(const RunConfiguration& configuration, const DataSets& data) {
    const bool tokens = data.inputs == InputKind::tokens;
    SampleTensors as_they_are{.input_shape = data.train.inputs.shape(),
                              .input_type = tokens ? at::kLong : at::kFloat};
    if (const auto file = script_file(configuration.model)) {
      script_ = read_script(read("model", *file), fmt::format("--model: {}", file->string()));
    }
    if (script_) {
      model_ = script_factory(*script_);
      return as_they_are;
    }
    if (tokens && data.train.inputs.shape().size() == 1 && is_transformer(configuration.model)) {
      model_ = model_of_sequences(configuration, data);
      return as_they_are;
    }
    const ImageShape shape = image_shape(configuration, data);
    model_ = model_of_images(configuration, data, shape);
    return {.input_shape = {shape.channels, shape.height, shape.width}};
  }

  // Every instance gets them: the trainer begins with those of the first.
  void load_initial_weights(const RunConfiguration& configuration) {
    if (configuration.weights.empty()) return;
    const std::filesystem::path file = weights_file(configuration.weights);
    const std::string source = fmt::format("--weights: {}", file.string());
    const auto weights = std::make_shared<const std::vector<NamedTensor>>(
        read_weights(read("weights", file), source));
    load_weights(model_(), *weights, source);
    model_ = [factory = model_, weights, source] {
      Model model = factory();
      load_weights(model, *weights, source);
      return model;
    };
  }

  // `own` is null for the configuration's.
  void load_loss(const RunConfiguration& configuration, const DataSets& data, const Loss& own) {
    if (own) {
      loss_ = test_loss_ = own;
      return;
    }
    const bool real = data.classes == 0;
    const std::string loss = real && configuration.loss.empty() ? "mse" : loss_of(configuration);
    if (real && loss_entry(loss).of_classes) {
      throw Error(
          fmt::format("--loss {}: the targets of {} are real numbers; accepted: mse, bce or "
                      "script:FILE",
                      loss, configuration.data));
    }
    if (real && configuration.label_smoothing > 0) {
      throw Error(
          fmt::format("--label-smoothing: the targets of {} are real numbers; accepted: with data "
                      "of classes",
                      configuration.data));
    }
    const auto file = script_file(loss);
    const std::string script = file ? read("loss", *file) : std::string();
    loss_ = run_loss(loss, configuration.label_smoothing, script);
    test_loss_ = run_loss(loss, /*label_smoothing=*/0, script);
  }

  std::string description_;
  std::vector<WorkloadFile> files_;
  // Of TorchScript: the model as it was given.
  std::optional<torch::jit::Module> script_;
  ModelFactory model_;
  Loss loss_;
  Loss test_loss_;
  TorchOptions options_;
  std::shared_ptr<const Dataset> train_;
  // Null where there is none.
  std::shared_ptr<const Dataset> test_;
};

}  // namespace

void require_portable_kernels(const EngineFacts::Facts& in_use) {
  const EngineFacts::Facts wanted{{"OpenBLAS", "Haswell"}, {"ATen", "AVX2"}, {"oneDNN", "avx2"}};
  if (in_use == wanted) return;
  throw Error(fmt::format(
      "--kernels portable: these libraries compute with {}, not with {}; accepted here: "
      "--kernels native",
      kernels_text(in_use), kernels_text(wanted)));
}

std::shared_ptr<const Workload> torch_workload(const RunConfiguration& configuration) {
  return torch_workload(configuration, {});
}

std::shared_ptr<const Workload> torch_workload(const RunConfiguration& configuration,
                                               WorkloadParts parts) {
  if (configuration.model == kOwn && !parts.model) {
    throw Error(
        "--model own: the model is in the program that trained it; accepted: that program, or the "
        "name of a model (rubato list models)");
  }
  if (!model_entry(configuration.model).in_libtorch) {
    throw Error(fmt::format("libtorch does not compute the model {}; accepted: --engine eigen",
                            configuration.model));
  }
  if (configuration.kernels == Kernels::portable) require_portable_kernels(kernel_facts());
  return std::make_shared<TorchWorkload>(configuration, std::move(parts));
}

TorchOptions torch_options(const RunConfiguration& configuration) {
  const PrecisionOptions precision = parse_precision(configuration.precision);
  return {.precision = precision.precision,
          .loss_scale = precision.loss_scale,
          .operators = parse_own_operators(configuration.operators),
          .initializer = parse_initializer(configuration.initializer),
          .buffers = configuration.buffers,
          .augment = augmentation(parse_augmentations(configuration.augment))};
}

}  // namespace rubato
