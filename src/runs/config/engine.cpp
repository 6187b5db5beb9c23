// The engine of a run follows from what cannot be computed elsewhere (docs/adr/0029):
// why_libtorch() compares each option that only libtorch implements with its default, why_eigen()
// asks the model, and Eigen computes the run unless libtorch has to. An option that Eigen ignores
// must therefore have a line in why_libtorch().

#include "engine.hpp"

#include <optional>
#include <string>

#include <fmt/format.h>

#include "allowed.hpp"
#include "base/core/throw_error.hpp"
#include "values/loss_choice.hpp"
#include "values/model_choice.hpp"

namespace rubato {

namespace {

// The reason why only Eigen can compute it; empty if libtorch can, too.
std::optional<std::string> why_eigen(const RunConfiguration& run) {
  if (run.model->in_libtorch) return std::nullopt;
  return "--model " + run.model.text();
}

// The reason why only libtorch can compute a run, in the user's words: "--precision bf16"; empty if
// Eigen can, too.
std::optional<std::string> why_libtorch(const RunConfiguration& run) {
  const RunConfiguration usual;
  if (!run.model->in_eigen) return "--model " + run.model.text();
  if (run.precision != usual.precision) return "--precision " + run.precision.text();
  if (run.operators != usual.operators) return "--operators " + run.operators.text();
  if (run.initializer != usual.initializer) return "--init " + run.initializer.text();
  if (run.buffers != usual.buffers) {
    return fmt::format("--buffers {}", choice_name(kBufferUses, run.buffers));
  }
  if (!run.augment.empty()) return "--augment " + run.augment.text();
  if (!run.weights.empty()) return "--weights " + run.weights.string();
  if (loss_of(run) != loss_of(usual)) return "--loss " + loss_of(run).text();
  if (run.label_smoothing > 0) return fmt::format("--label-smoothing {}", run.label_smoothing);
  return std::nullopt;
}

}  // namespace

Engine engine_of(const RunConfiguration& run) {
  const auto libtorch = why_libtorch(run);
  const auto eigen = why_eigen(run);
  if (libtorch && eigen) {
    throw_error("{} is computed by Eigen, which cannot follow {}; accepted: one or the other",
                *eigen, *libtorch);
  }
  if (libtorch && run.engine == Engine::eigen) {
    refuse("engine eigen", "only libtorch does " + *libtorch, "--engine libtorch or auto");
  }
  if (eigen && run.engine == Engine::libtorch) {
    refuse("engine libtorch", "only Eigen does " + *eigen, "--engine eigen or auto");
  }
  if (run.engine != Engine::automatic) return run.engine;
  return libtorch ? Engine::libtorch : Engine::eigen;
}

}  // namespace rubato
