#include "config/engine.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/core/family.hpp>
#include <rubato/core/spec.hpp>
#include <rubato/recipe/perceptron_options.hpp>
#include <rubato/recipe/quadratic_options.hpp>

namespace rubato {

namespace {

constexpr std::int64_t kPixels = std::int64_t{28} * 28;
constexpr std::int64_t kClasses = 10;

std::int64_t parameters_of_perceptron(const std::string& model) {
  return dense_parameters(kPixels, parse_perceptron(model).hidden, kClasses);
}

constexpr std::array<ModelEntry, 5> kModels{
    {{.name = "mnist-cnn",
      .help = "PyTorch's classic MNIST network, for images of 1 x 28 x 28; libtorch",
      .in_libtorch = true,
      .parameters = [](const std::string&) { return std::int64_t{21'900}; }},
     {.name = "mlp",
      .help = "a multi-layer perceptron; Eigen, with default arguments libtorch, too",
      .in_eigen = true,
      .in_libtorch = true,
      .parameters = parameters_of_perceptron,
      .read = [](Spec& spec) { static_cast<void>(read_perceptron(spec)); }},
     {.name = "softmax",
      .help = "softmax regression; Eigen or libtorch",
      .in_eigen = true,
      .in_libtorch = true,
      .parameters = [](const std::string&) { return dense_parameters(kPixels, {}, kClasses); }},
     {.name = "toy-net",
      .help = "four convolutions and two dense layers, 5.8 million parameters; libtorch",
      .in_libtorch = true,
      .parameters = [](const std::string&) { return std::int64_t{5'752'714}; }},
     {.name = "quadratic",
      .help = "the noisy quadratic model (Zhang et al. 2019), which needs no data; Eigen",
      .in_eigen = true,
      .classifies = false,
      .parameters = [](const std::string& model) { return parse_quadratic(model).dim; },
      .read = [](Spec& spec) { static_cast<void>(read_quadratic(spec)); }}}};

// A program's own, which no command has, and so is none of those that users are told of.
constexpr ModelEntry kOwnModel{.name = kOwn,
                               .help = "a model of a program's own",
                               .in_libtorch = true,
                               .parameters = [](const std::string&) { return std::int64_t{0}; }};

// Why only Eigen can compute it.
std::optional<std::string> why_eigen(const RunConfiguration& run) {
  const ModelEntry& model = model_entry(run.model);
  const bool has_arguments = run.model != model.name;
  if (model.in_libtorch && !has_arguments) return std::nullopt;
  return "--model " + run.model;
}

}  // namespace

std::span<const ModelEntry> models() {
  return kModels;
}

const ModelEntry& model_entry(const std::string& model) {
  if (model == kOwn) return kOwnModel;
  Spec spec(model);
  const ModelEntry& entry = find_row("model", spec.name(), kModels);
  if (entry.read != nullptr) entry.read(spec);
  spec.finish();
  return entry;
}

std::optional<std::string> why_libtorch(const RunConfiguration& run) {
  const RunConfiguration usual;
  if (!model_entry(run.model).in_eigen) return "--model " + run.model;
  if (run.precision != usual.precision) return "--precision " + run.precision;
  if (run.operators != usual.operators) return "--operators " + run.operators;
  if (run.initializer != usual.initializer) return "--init " + run.initializer;
  if (run.buffers != usual.buffers) {
    return fmt::format("--buffers {}", choice_name(kBufferUses, run.buffers));
  }
  if (run.augment_shift > 0) return fmt::format("--augment-shift {}", run.augment_shift);
  if (run.label_smoothing > 0) return fmt::format("--label-smoothing {}", run.label_smoothing);
  return std::nullopt;
}

Engine engine_of(const RunConfiguration& run) {
  const auto libtorch = why_libtorch(run);
  const auto eigen = why_eigen(run);
  if (libtorch && eigen) {
    throw Error(
        fmt::format("{} is computed by Eigen, which cannot follow {}; accepted: one or the "
                    "other",
                    *eigen, *libtorch));
  }
  if (libtorch && run.engine == Engine::eigen) {
    throw Error(fmt::format(
        "--engine eigen: only libtorch does {}; accepted: --engine libtorch or auto", *libtorch));
  }
  if (eigen && run.engine == Engine::libtorch) {
    throw Error(
        fmt::format("--engine libtorch: only Eigen does {}; accepted: --engine eigen or "
                    "auto",
                    *eigen));
  }
  if (run.engine != Engine::automatic) return run.engine;
  return libtorch ? Engine::libtorch : Engine::eigen;
}

}  // namespace rubato
