#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/model/builtin_models.hpp>
#include <rubato/model/script.hpp>
#include <rubato/torch/arrays.hpp>
#include <rubato/torch/dataset.hpp>
#include <rubato/torch/environment.hpp>
#include <rubato/torch/losses.hpp>
#include <rubato/torch/torch_trainer.hpp>
#include <rubato/torch/weights.hpp>
#include <rubato/torch_run/torch_workload.hpp>

#include "config/engine.hpp"
#include "config/loss.hpp"
#include "config/model_source.hpp"
#include "core/file.hpp"
#include "model/shared_state.hpp"
#include "run/images.hpp"
#include "torch/class_rows.hpp"
#include "torch/torch_objective.hpp"
#include "torch_run/portable_kernels.hpp"
#include "torch_run/run_loss.hpp"

namespace rubato {

namespace {

EngineFacts::Facts kernel_facts() {
  const KernelsInUse kernels = kernels_in_use();
  return {{"OpenBLAS", kernels.openblas}, {"ATen", kernels.aten}, {"oneDNN", kernels.onednn}};
}

class TorchWorkload final : public Workload {
 public:
  explicit TorchWorkload(const RunConfiguration& configuration)
      : TorchWorkload(configuration, load_images(configuration)) {}

  std::string description() const override { return description_; }
  std::int64_t samples() const override { return train_.size(); }

  std::int64_t gradient_bytes() const override {
    std::int64_t bytes = 0;
    for (const NamedTensor& parameter : sort_tensors(model_()).trained) {
      bytes += static_cast<std::int64_t>(parameter.tensor.nbytes());
    }
    return bytes;
  }

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

  Trainer make_trainer(std::unique_ptr<StepSource> steps,
                       const TrainOptions& options) const override {
    TorchTrainer trainer(model_, loss_, train_, std::move(steps), options, options_);
    trainer.set_test(test_, test_loss_);
    return trainer;
  }

  std::string_view weights_suffix() const override { return "pt"; }
  std::string weights(std::span<const NamedArray> parameters,
                      std::span<const NamedArray> buffers) const override {
    return pickled_weights(tensors_of(parameters), tensors_of(buffers));
  }
  std::optional<std::string> model_file(std::span<const NamedArray> parameters,
                                        std::span<const NamedArray> buffers) const override {
    if (!script_) return std::nullopt;
    return script_bytes(*script_, tensors_of(parameters), tensors_of(buffers));
  }
  std::span<const WorkloadFile> files() const override { return files_; }

  ArrayCopies predict(const Trainer& trainer, Prediction what) const override {
    auto& objective = dynamic_cast<TorchObjective&>(trainer.objective());
    const Tensors outputs = objective.predict(*make_dataset(test_), trainer.workers());
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
  TorchWorkload(const RunConfiguration& configuration, const TrainTestImages& images)
      : description_(describe(configuration, images)), options_(torch_options(configuration)) {
    load_model(configuration, {.height = images.train.height, .width = images.train.width});
    load_initial_weights(configuration);
    load_loss(configuration);
    // Both sets by the training set's statistics: the test set is not known beforehand.
    const PixelStatistics statistics = pixel_statistics(images.train);
    train_ = to_tensors(images.train, statistics);
    test_ = to_tensors(images.test, statistics);
    train_.fingerprint = fingerprint_of(images.train);
    // What it is normalised by is the training set's.
    test_.fingerprint = fingerprint_of(images.test);
    // A model in float64 takes float64.
    const at::ScalarType type = SharedState(model_()).type();
    for (TensorDataset* set : {&train_, &test_}) {
      if (set->inputs.is_floating_point()) set->inputs = set->inputs.to(type);
    }
  }

  // int64, of the targets' shape.
  [[nodiscard]] at::Tensor classes_of(const Tensors& outputs) const {
    if (outputs.size() == 1) {
      if (const auto rows = class_rows(outputs.front(), test_.targets)) {
        return rows->outputs.argmax(1).view(test_.targets.sizes());
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

  void load_model(const RunConfiguration& configuration, const ImageShape& shape) {
    const auto file = script_file(configuration.model);
    if (!file) {
      model_ = builtin_model(configuration.model, shape);
      return;
    }
    script_ = read_script(read("model", *file), fmt::format("--model: {}", file->string()));
    model_ = script_factory(*script_);
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

  void load_loss(const RunConfiguration& configuration) {
    const std::string loss = loss_of(configuration);
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
  TensorDataset train_;
  TensorDataset test_;
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
  if (!model_entry(configuration.model).in_libtorch) {
    throw Error(fmt::format("libtorch does not compute the model {}; accepted: --engine eigen",
                            configuration.model));
  }
  if (configuration.kernels == Kernels::portable) require_portable_kernels(kernel_facts());
  return std::make_shared<TorchWorkload>(configuration);
}

TorchOptions torch_options(const RunConfiguration& configuration) {
  const PrecisionOptions precision = parse_precision(configuration.precision);
  return {.precision = precision.precision,
          .loss_scale = precision.loss_scale,
          .operators = parse_own_operators(configuration.operators),
          .initializer = parse_initializer(configuration.initializer),
          .buffers = configuration.buffers,
          .augment = configuration.augment_shift > 0 ? random_shift(configuration.augment_shift)
                                                     : Augmentation()};
}

}  // namespace rubato
