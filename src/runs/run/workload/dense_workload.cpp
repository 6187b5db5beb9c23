// DenseWorkload has a data set, for softmax regression and perceptrons; QuadraticWorkload has a
// problem of its own and reads no data. Inputs of any type are converted once to rows of float that
// stay in memory, so require_room() asks first whether they fit; data of the user's own are such
// rows already. The option --kernels portable needs an Eigen that computes with FMA, and is refused
// otherwise.

#include <memory>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <oneapi/tbb/version.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/eigen.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/large_memory.hpp"
#include "base/core/limits.hpp"
#include "base/core/throw_error.hpp"
#include "loop/eigen/dense_parameters.hpp"
#include "run_data.hpp"
#include "runs/config/values/model_choice.hpp"

namespace rubato {

namespace {

constexpr std::int64_t kFloatBytes = sizeof(float);

EngineFacts eigen_facts(EngineFacts::Facts kernels) {
  return {.engine = std::string(choice_name(kEngines, Engine::eigen)),
          .kernels = std::move(kernels),
          .versions = {{"eigen", RUBATO_EIGEN_VERSION}, {"onetbb", TBB_runtime_version()}}};
}

// Throws Error if Eigen cannot keep the promise of --kernels portable.
void require_portable(const RunConfiguration& configuration) {
  if (configuration.kernels != Kernels::portable) return;
  const InstructionSet set = dense_instruction_set();
  if (!has_fma(set)) {
    throw_error(
        "--kernels portable: Eigen computes with {}, which has no FMA; accepted here: --kernels "
        "native",
        choice_name(kInstructionSets, set));
  }
}

// The inputs of a set as rows of real numbers: where they lie, if they are such rows in memory.
BorrowedRows<float> input_rows(const DataSets& data, const SampleSet& set) {
  const SampleRows& inputs = set.inputs;
  const auto size = static_cast<std::size_t>(inputs.elements());
  const std::size_t values = static_cast<std::size_t>(set.size()) * size;
  const bool as_they_are = data.in_memory && inputs.type() == ElementType::f32 &&
                           data.features.empty() && set.chosen == nullptr;
  if (as_they_are && !inputs.dense().empty()) {
    const auto* const rows = reinterpret_cast<const float*>(inputs.dense().data());
    return BorrowedRows<float>({rows, values}, inputs.owner());
  }
  const InputReader reader(data);
  const std::shared_ptr<void> memory = large_memory(values * sizeof(float));
  auto* const rows = static_cast<float*>(memory.get());
  for (std::int64_t i = 0; i < set.size(); ++i) {
    reader.read(set.input(i), rows + static_cast<std::size_t>(i) * size);
  }
  return BorrowedRows<float>({rows, values}, memory);
}

template <class T>
std::vector<T> target_rows(const SampleSet& set) {
  const auto size = static_cast<std::size_t>(set.targets.elements());
  std::vector<T> rows(static_cast<std::size_t>(set.size()) * size);
  for (std::int64_t i = 0; i < set.size(); ++i) {
    read_numbers(set.targets.type(), set.target(i),
                 rows.data() + static_cast<std::size_t>(i) * size);
  }
  return rows;
}

DenseDataset<float> dense_rows(const DataSets& data, const SampleSet& set) {
  if (data.classes > 0) {
    return DenseDataset<float>::classified(input_rows(data, set), target_rows<std::int64_t>(set),
                                           data.classes);
  }
  return DenseDataset<float>::with_targets(input_rows(data, set), target_rows<float>(set),
                                           set.targets.elements());
}

void require_room(const RunConfiguration& configuration, const DataSets& data) {
  double samples = static_cast<double>(data.train.size());
  if (data.test) samples += static_cast<double>(data.test->size());
  const double features = static_cast<double>(data.train.inputs.elements());
  require_memory(
      samples * features * kFloatBytes,
      fmt::format("{}, {} {} of {} numbers as floats, needs", configuration.data.text(), samples,
                  data.noun, features),
      "with --engine libtorch, data that do not fit are read from the file in every step");
}

class DenseWorkload final : public Workload {
 public:
  explicit DenseWorkload(const RunConfiguration& configuration)
      : DenseWorkload(configuration, load_data(configuration)) {}

  std::string description() const override { return description_; }
  std::int64_t samples() const override { return train_->samples(); }
  Sampler sampler() const override { return sampler_; }
  bool has_real_targets() const override { return has_real_targets_; }
  void require_suits(const RunConfiguration& run) const override { require_data(run, known_); }
  void complete() const override {
    static_cast<void>(train_->fingerprint());
    if (test_) static_cast<void>(test_->fingerprint());
  }
  std::string data_record() const override { return data_record_; }
  std::vector<std::string> class_names() const override { return class_names_; }
  std::int64_t gradient_bytes() const override {
    const std::vector<std::int64_t> none;
    return kFloatBytes * dense_parameters(train_->features(),
                                          perceptron_ ? perceptron_->hidden : none,
                                          train_->outputs());
  }
  EngineFacts engine() const override {
    const auto set = choice_name(kInstructionSets, dense_instruction_set());
    return eigen_facts({{"Eigen", std::string(set)}});
  }

  Trainer make_trainer(std::unique_ptr<StepSource> steps,
                       const TrainOptions& options) const override {
    DenseNetworkOptions<float> network{.test = test_, .seed = options.seed};
    if (!perceptron_) {
      return {softmax_regression(*train_, std::move(network)), std::move(steps), options};
    }
    network.hidden = perceptron_->hidden;
    network.activation = perceptron_->activation;
    return {multi_layer_perceptron(*train_, std::move(network)), std::move(steps), options};
  }

 private:
  DenseWorkload(const RunConfiguration& configuration, const DataSets& data)
      : description_(describe(configuration, data)),
        data_record_(rubato::data_record(configuration, data)),
        class_names_(rubato::class_names(data)),
        known_(known_data(data)),
        has_real_targets_(data.classes == 0),
        sampler_(sampler_in(configuration, data)) {
    const ModelOptions& model = configuration.model->options;
    if (const auto* mlp = std::get_if<PerceptronOptions>(&model)) perceptron_ = *mlp;
    require_room(configuration, data);
    train_ = dense_rows(data, data.train);
    if (data.test) test_ = dense_rows(data, *data.test);
  }

  std::string description_;
  std::string data_record_;
  std::vector<std::string> class_names_;
  KnownData known_;
  bool has_real_targets_;
  Sampler sampler_;
  std::optional<DenseDataset<float>> train_;
  std::optional<DenseDataset<float>> test_;
  // Empty for softmax regression.
  std::optional<PerceptronOptions> perceptron_;
};

class QuadraticWorkload final : public Workload {
 public:
  explicit QuadraticWorkload(const RunConfiguration& configuration)
      : model_(configuration.model.text()),
        options_(std::get<QuadraticOptions>(configuration.model->options)) {}

  std::string description() const override {
    return fmt::format("{}: {} parameters, {} samples", model_, options_.dim, options_.samples);
  }
  std::int64_t samples() const override { return options_.samples; }
  bool has_real_targets() const override { return true; }
  std::int64_t gradient_bytes() const override { return kFloatBytes * options_.dim; }
  EngineFacts engine() const override { return eigen_facts({}); }

  Trainer make_trainer(std::unique_ptr<StepSource> steps,
                       const TrainOptions& options) const override {
    return {noisy_quadratic<float>(options_), std::move(steps), options};
  }

 private:
  std::string model_;
  QuadraticOptions options_;
};

}  // namespace

std::shared_ptr<const Workload> dense_workload(const RunConfiguration& configuration) {
  if (!configuration.model->in_eigen) {
    throw_error("Eigen does not compute the model {}; accepted: softmax, mlp, quadratic",
                configuration.model.text());
  }
  require_portable(configuration);
  if (!configuration.model->classifies) return std::make_shared<QuadraticWorkload>(configuration);
  return std::make_shared<DenseWorkload>(configuration);
}

}  // namespace rubato
