#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/model/builtin_models.hpp>
#include <rubato/torch/dataset.hpp>
#include <rubato/torch/losses.hpp>
#include <rubato/torch/torch_trainer.hpp>
#include <rubato/torch_run/torch_workload.hpp>

#include "config/engine.hpp"
#include "run/images.hpp"
#include "torch_run/libtorch_workload.hpp"
#include "torch_run/portable_kernels.hpp"

namespace rubato {

namespace {

class TorchWorkload final : public LibtorchWorkload {
 public:
  explicit TorchWorkload(const RunConfiguration& configuration)
      : TorchWorkload(configuration, load_images(configuration)) {}

  std::string description() const override { return description_; }
  std::int64_t samples() const override { return train_.size(); }

  std::int64_t gradient_bytes() const override { return gradient_bytes_of(model_); }

  Trainer make_trainer(std::unique_ptr<StepSource> steps,
                       const TrainOptions& options) const override {
    TorchTrainer trainer(model_, nll_loss(label_smoothing_), train_, std::move(steps), options,
                         options_);
    trainer.set_test(test_, nll_loss());
    return trainer;
  }

 private:
  TorchWorkload(const RunConfiguration& configuration, const TrainTestImages& images)
      : description_(describe(configuration, images)),
        model_(builtin_model(configuration.model,
                             {.height = images.train.height, .width = images.train.width})),
        label_smoothing_(configuration.label_smoothing),
        options_(torch_options(configuration)) {
    // Both sets by the training set's statistics: the test set is not known beforehand.
    const PixelStatistics statistics = pixel_statistics(images.train);
    train_ = to_tensors(images.train, statistics);
    test_ = to_tensors(images.test, statistics);
    train_.fingerprint = fingerprint_of(images.train);
    // What it is normalised by is the training set's.
    test_.fingerprint = fingerprint_of(images.test);
  }

  std::string description_;
  ModelFactory model_;
  double label_smoothing_;
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
  if (configuration.model == kOwn) {
    throw Error(
        "--model own: the model is in the program that trained it; accepted: that program, or the "
        "name of a model (rubato list models)");
  }
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
