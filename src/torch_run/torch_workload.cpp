#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/model/builtin_models.hpp>
#include <rubato/torch/arrays.hpp>
#include <rubato/torch/dataset.hpp>
#include <rubato/torch/environment.hpp>
#include <rubato/torch/losses.hpp>
#include <rubato/torch/torch_trainer.hpp>
#include <rubato/torch/weights.hpp>
#include <rubato/torch_run/torch_workload.hpp>

#include "config/engine.hpp"
#include "core/memory.hpp"
#include "run/run_data.hpp"
#include "torch/sample_dataset.hpp"
#include "torch_run/portable_kernels.hpp"

namespace rubato {

namespace {

EngineFacts::Facts kernel_facts() {
  const KernelsInUse kernels = kernels_in_use();
  return {{"OpenBLAS", kernels.openblas}, {"ATen", kernels.aten}, {"oneDNN", kernels.onednn}};
}

// Samples of fewer dimensions are images of one channel, and of one row. Throws Error for what
// built-in models are not made for.
ImageShape shape_for_builtin(const RunConfiguration& configuration, const DataSets& data) {
  require_one_target(configuration, data);
  if (data.classes == 0) {
    throw Error(fmt::format(
        "--model {}: built-in models of libtorch tell classes apart, and the targets of "
        "{} are real numbers; accepted: --model mlp with --engine eigen",
        configuration.model, configuration.data));
  }
  const std::vector<std::int64_t>& shape = data.train.inputs.shape();
  constexpr std::size_t kMostDimensions = 3;
  if (shape.size() > kMostDimensions) {
    throw Error(
        fmt::format("--model {}: samples of {} dimensions; accepted: channels x height x width, "
                    "height x width, or features",
                    configuration.model, shape.size()));
  }
  std::vector<std::int64_t> image(kMostDimensions - shape.size(), 1);
  image.insert(image.end(), shape.begin(), shape.end());
  return {.channels = image[0], .height = image[1], .width = image[2], .classes = data.classes};
}

class TorchWorkload final : public Workload {
 public:
  explicit TorchWorkload(const RunConfiguration& configuration)
      : TorchWorkload(configuration, load_data(configuration)) {}

  std::string description() const override { return description_; }
  std::int64_t samples() const override { return train_->size(); }

  std::int64_t gradient_bytes() const override {
    std::int64_t parameters = 0;
    for (const NamedTensor& parameter : model_().parameters) parameters += parameter.tensor.numel();
    return parameters * static_cast<std::int64_t>(sizeof(float));
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
    TorchTrainer trainer(model_, nll_loss(label_smoothing_), train_, std::move(steps), options,
                         options_);
    if (test_) trainer.set_test(test_, nll_loss());
    return trainer;
  }

  std::string_view weights_suffix() const override { return "pt"; }
  std::string weights(std::span<const NamedArray> parameters,
                      std::span<const NamedArray> buffers) const override {
    return pickled_weights(tensors_of(parameters), tensors_of(buffers));
  }

 private:
  TorchWorkload(const RunConfiguration& configuration, const DataSets& data)
      : description_(describe(configuration, data)),
        model_(builtin_model(configuration.model, shape_for_builtin(configuration, data))),
        label_smoothing_(configuration.label_smoothing),
        options_(torch_options(configuration)) {
    const ImageShape shape = shape_for_builtin(configuration, data);
    const SampleTensors tensors{.input_shape = {shape.channels, shape.height, shape.width}};
    // What is larger is read in every step from where it lies.
    constexpr double kShare = 0.25;
    const double room = kShare * memory_limit().bytes;
    train_ = make_dataset(data, data.train, tensors, room);
    if (data.test) test_ = make_dataset(data, *data.test, tensors, room);
  }

  std::string description_;
  ModelFactory model_;
  double label_smoothing_;
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
          .augment = augmentation(parse_augmentations(configuration.augment))};
}

}  // namespace rubato
