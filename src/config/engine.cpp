#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/config/engine.hpp>
#include <rubato/core/error.hpp>
#include <rubato/core/spec.hpp>
#include <rubato/recipe/perceptron_options.hpp>
#include <rubato/recipe/quadratic_options.hpp>

namespace rubato {

namespace {

// Why only Eigen can compute it.
std::optional<std::string> why_eigen(const RunConfiguration& run) {
  const ModelEntry& model = model_entry(run.model);
  const bool has_arguments = run.model != model.name;
  if (model.in_libtorch && !has_arguments) return std::nullopt;
  return "--model " + run.model;
}

}  // namespace

const ModelEntry& model_entry(const std::string& model) {
  Spec spec(model);
  std::vector<std::string_view> names;
  for (const ModelEntry& entry : kModels) {
    names.push_back(entry.name);
    if (entry.name != spec.name()) continue;
    if (entry.name == "mlp") {
      static_cast<void>(parse_perceptron(model));
    } else if (entry.name == "quadratic") {
      static_cast<void>(parse_quadratic(model));
    } else {
      spec.finish();
    }
    return entry;
  }
  throw Error(unknown_name_message("model", spec.name(), names));
}

std::optional<std::string> why_libtorch(const RunConfiguration& run) {
  const RunConfiguration usual;
  if (!model_entry(run.model).in_eigen) return "--model " + run.model;
  if (run.precision != usual.precision) return "--precision " + run.precision;
  if (run.operators != usual.operators) return "--operators " + run.operators;
  if (run.initializer != usual.initializer) return "--init " + run.initializer;
  if (run.augment_shift > 0) return fmt::format("--augment-shift {}", run.augment_shift);
  if (run.label_smoothing > 0) return fmt::format("--label-smoothing {}", run.label_smoothing);
  const OptimizerKind optimizer = optimizer_options(run).kind;
  if (optimizer != OptimizerKind::sgd && optimizer != OptimizerKind::lars) {
    return "--optimizer " + run.optimizer;
  }
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
