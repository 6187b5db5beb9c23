// PartsLoader puts a workload together in the order in which parts depend on each other: the
// TorchScript file says in which type the model computes, the data determine the shape of a
// built-in model, and the kind of targets determines the default loss. Parts that a program has
// itself (WorkloadParts) take precedence over those that the configuration names. The files of a
// model, of weights and of a loss stay mapped, because a run records their bytes and a further
// trainer reads them again; their pages are released after reading.

#include "torch_workload.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <c10/core/DefaultDtype.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/libtorch/workload.hpp>

#include "base/core/limits.hpp"
#include "base/core/throw_error.hpp"
#include "libtorch/model/networks.hpp"
#include "libtorch/model/script.hpp"
#include "libtorch/model/shared_state.hpp"
#include "libtorch/torch/guards.hpp"
#include "libtorch/torch/sample_tensors.hpp"
#include "libtorch_workload.hpp"
#include "loop/data/data_files.hpp"
#include "loop/data/input_file.hpp"
#include "loop/data/tables/table_encoding.hpp"
#include "runs/config/allowed.hpp"
#include "runs/config/values/loss_choice.hpp"
#include "runs/config/values/model_choice.hpp"
#include "runs/run/workload/run_data.hpp"

namespace rubato {

namespace {

class Float32ByDefault {
 public:
  Float32ByDefault() : before_(c10::get_default_dtype()) {
    c10::set_default_dtype(caffe2::TypeMeta::Make<float>());
  }
  ~Float32ByDefault() { c10::set_default_dtype(before_); }
  Float32ByDefault(const Float32ByDefault&) = delete;
  Float32ByDefault& operator=(const Float32ByDefault&) = delete;

 private:
  caffe2::TypeMeta before_;
};

// Makes models with float32 parameters, whatever torch.set_default_dtype() says in the process.
ModelFactory in_float32(ModelFactory make) {
  return [make = std::move(make)] {
    const Float32ByDefault float32;
    return make();
  };
}

// Loads what a configuration names, except for the parts that a program has itself.
class PartsLoader {
 public:
  PartsLoader(const RunConfiguration& configuration, WorkloadParts own)
      : configuration_(configuration), own_(std::move(own)) {
    parts_.options = torch_options(configuration);
  }

  [[nodiscard]] LibtorchParts load() {
    load_script();
    if (own_.train) {
      load_datasets();
    } else {
      load_samples();
    }
    note_modes();
    for (const WorkloadFile& file : parts_.files) file.mapping->forget();
    return std::move(parts_);
  }

 private:
  // Opens the file that an option names, and keeps it.
  std::shared_ptr<const MappedFile> open(const char* option, const std::filesystem::path& file) {
    auto mapping = MappedFile::open(file, "a file of Python's torch.save() or torch.jit.save()");
    parts_.files.push_back({.option = option,
                            .extension = file.extension().string(),
                            .bytes = mapping->bytes(),
                            .mapping = mapping});
    return mapping;
  }

  void load_script() {
    parts_.transient = own_.transient;
    if (own_.model) parts_.script = std::make_shared<ScriptModel>(*std::move(own_.model));
    if (const auto& file = configuration_.model->script) {
      parts_.script = std::make_shared<ScriptModel>(
          [mapping = open("model", *file), source = fmt::format("--model: {}", file->string())] {
            torch::jit::Module module = read_script(mapping->bytes(), source);
            mapping->forget();
            return module;
          });
    }
    if (!parts_.script) return;
    try {
      const Model model = make_model(parts_.script->module());
      script_type_ = sort_tensors(model).type;
      parts_.gradient_bytes = gradient_bytes(model);
    } catch (const Error& error) {
      const auto& file = configuration_.model->script;
      throw_error("{}: {}", file ? "--model: " + file->string() : "model", error.what());
    }
  }

  void load_datasets() {
    if (!parts_.script) {
      refuse("model " + configuration_.model.text(),
             "it takes one tensor of inputs and one of targets", "a model of TorchScript");
    }
    if (configuration_.validation) {
      refuse("validation", "no share of samples with several inputs or targets is held out",
             "a test set");
    }
    parts_.train = std::move(own_.train);
    parts_.test = std::move(own_.test);
    parts_.sampler = std::move(own_.sampler);
    parts_.description = fmt::format("own data: {} training and {} test samples",
                                     parts_.train->size(), parts_.test ? parts_.test->size() : 0);
    const Tensors targets = parts_.train->range(0, 1).targets;
    const bool is_real = !targets.empty() && targets.front().is_floating_point();
    const bool are_rows =
        is_real && targets.size() == 1 && targets.front().dim() == 2 && targets.front().size(1) > 1;
    const bool are_probabilities = are_rows && configuration_.loss->of_probabilities;
    if (is_real && !are_probabilities) require_loss_of_numbers(configuration_);
    load_initial_weights();
    load_loss(is_real);
  }

  void load_samples() {
    const DataSets data =
        own_.data ? prepared(configuration_, std::move(*own_.data)) : load_data(configuration_);
    parts_.description = describe(configuration_, data);
    parts_.known = known_data(data);
    parts_.data_record = data_record(configuration_, data);
    parts_.class_names = class_names(data);
    if (data.test) parts_.sample_names = data.test->sample_names();
    parts_.classes = data.classes;
    parts_.sampler = sampler_in(configuration_, data);
    if (data.text && data.test) parts_.bytes_per_target = bytes_per_target(*data.test, *data.text);
    SampleTensors tensors = parts_.script ? as_they_are(data) : load_builtin(data);
    load_initial_weights();
    load_loss(data.classes == 0);
    if (!parts_.gradient_bytes) {
      // The initial values of this instance are drawn for nothing, so the generator is restored.
      const GeneratorKeeper generator;
      parts_.gradient_bytes = gradient_bytes(parts_.model());
    }
    // A model in float64 takes float64 inputs.
    if (tensors.input_type != at::kLong) tensors.input_type = script_type_;
    tensors.real_target_type = script_type_;
    // Larger data are read from the file in every step.
    constexpr double kShare = 0.25;
    const double room = kShare * memory_limit().bytes;
    parts_.train = make_dataset(data, data.train, tensors, room);
    if (data.test) parts_.test = make_dataset(data, *data.test, tensors, room);
  }

  // The description says what a file computes regardless of its mode.
  void note_modes() {
    if (!parts_.script || !parts_.train) return;
    constexpr std::int64_t kFew = 8;
    const GeneratorKeeper generator;
    use_one_intra_op_thread();
    const Batch batch = parts_.train->range(0, std::min(kFew, parts_.train->size()));
    const std::vector<std::string> notes = mode_notes(parts_.script->module(), batch.inputs);
    if (!notes.empty()) {
      parts_.description += fmt::format("; the model: {}", fmt::join(notes, ", "));
    }
  }

  static SampleTensors as_they_are(const DataSets& data) {
    return {.input_shape = data.train.inputs.shape(),
            .input_type = data.inputs == InputKind::tokens ? at::kLong : at::kFloat};
  }

  // Returns the form in which the model takes its samples.
  SampleTensors load_builtin(const DataSets& data) {
    const DataShape shape = shape_of(data);
    parts_.model = in_float32(builtin_model_for(configuration_.model.text(), shape));
    if (shape.vocabulary > 0) return as_they_are(data);
    return {.input_shape = {shape.channels, shape.height, shape.width}};
  }

  // Every instance gets the weights: the trainer begins with those of the first.
  void load_initial_weights() {
    if (configuration_.weights.empty()) return;
    const std::filesystem::path file = weights_file(configuration_.weights);
    const std::string source = fmt::format("--weights: {}", file.string());
    const auto mapping = open("weights", file);
    if (parts_.script) {
      parts_.script->begin_with([mapping, source, transient = own_.transient](const Model& model) {
        std::vector<NamedTensor> weights = read_weights(mapping->bytes(), source);
        // Transient buffers keep the values of the model.
        for (const NamedTensor& buffer : model.buffers) {
          if (std::ranges::find(transient, buffer.name) == transient.end()) continue;
          const bool given =
              std::ranges::find(weights, buffer.name, &NamedTensor::name) != weights.end();
          if (!given) weights.push_back(buffer);
        }
        load_weights(model, weights, source);
        mapping->forget();
      });
      return;
    }
    const auto weights =
        std::make_shared<const std::vector<NamedTensor>>(read_weights(mapping->bytes(), source));
    {
      // This instance only shows whether the weights fit.
      const GeneratorKeeper generator;
      load_weights(parts_.model(), *weights, source);
    }
    parts_.model = [factory = parts_.model, weights, source] {
      Model model = factory();
      load_weights(model, *weights, source);
      return model;
    };
  }

  // `real` says that targets are real numbers, not classes.
  void load_loss(bool real) {
    if (own_.loss) {
      parts_.loss = own_.loss;
      return;
    }
    const Parsed<LossChoice> loss =
        real && configuration_.loss.empty() ? "mse" : loss_of(configuration_);
    const auto& file = loss->script;
    const std::string_view script = file ? open("loss", *file)->bytes() : std::string_view();
    parts_.loss = run_loss(loss, configuration_.label_smoothing, script);
    parts_.test_loss = run_loss(loss, /*label_smoothing=*/0, script);
  }

  const RunConfiguration& configuration_;
  WorkloadParts own_;
  LibtorchParts parts_;
  // Type in which a TorchScript model computes.
  at::ScalarType script_type_ = at::kFloat;
};

}  // namespace

void require_portable_kernels(const EngineFacts::Facts& in_use) {
  const EngineFacts::Facts wanted{{"OpenBLAS", "Haswell"}, {"ATen", "AVX2"}, {"oneDNN", "avx2"}};
  if (in_use == wanted) return;
  throw_error(
      "--kernels portable: these libraries compute with {}, not with {}; accepted here: --kernels "
      "native",
      kernels_text(in_use), kernels_text(wanted));
}

std::shared_ptr<const Workload> torch_workload(const RunConfiguration& configuration) {
  return torch_workload(configuration, {});
}

std::shared_ptr<const Workload> torch_workload(const RunConfiguration& configuration,
                                               WorkloadParts parts) {
  if (configuration.model->is_own() && !parts.model) {
    refuse("model own", "the model is in the program that trained it",
           "that program, or the name of a model (rubato list models)");
  }
  if (!configuration.model->in_libtorch) {
    throw_error("libtorch does not compute the model {}; accepted: --engine eigen",
                configuration.model.text());
  }
  if (configuration.kernels == Kernels::portable) require_portable_kernels(kernel_facts());
  return libtorch_workload(PartsLoader(configuration, std::move(parts)).load());
}

std::shared_ptr<const Workload> recorded_workload(
    const RunConfiguration& configuration, const std::filesystem::path& run_folder, bool labels,
    UnseenCategories unseen, const std::function<void(const std::string&)>& note) {
  RunConfiguration all = configuration;
  all.validation.reset();
  DataSets data = load_recorded_data(run_folder, all, labels, unseen);
  for (const std::string& line : data.notes) note(line);
  return torch_workload(all, {.data = std::move(data)});
}

TorchOptions torch_options(const RunConfiguration& configuration) {
  const PrecisionOptions& precision = *configuration.precision;
  return {.precision = precision.precision,
          .loss_scale = precision.loss_scale,
          .operators = *configuration.operators,
          .initializer = *configuration.initializer,
          .buffers = configuration.buffers,
          .augment = augmentation(*configuration.augment)};
}

}  // namespace rubato
