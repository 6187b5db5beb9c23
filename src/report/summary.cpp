#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <rubato/report/summary.hpp>

#include "core/or_null.hpp"
#include "machine/instruction_set.hpp"
#include "report/clock_json.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

// "OpenBLAS" is "openblas".
std::string key_of(std::string_view library) {
  std::string key(library);
  std::transform(key.begin(), key.end(), key.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return key;
}

Json kernels_of(const RunSummary& summary) {
  constexpr std::string_view kOpenBlas = "openblas";
  Json json{{"wanted", summary.kernels_wanted},
            {"cpu", choice_name(kInstructionSets, cpu_instruction_set())}};
  for (const auto& [library, kernels] : summary.engine.kernels) {
    json[key_of(library)] = or_null(kernels);
  }
  if (json.contains(kOpenBlas)) {
    json["openblas_by_itself"] =
        summary.kernel_start ? or_null(summary.kernel_start->openblas_before) : json[kOpenBlas];
  }
  return json;
}

Json versions_of(const RunSummary& summary) {
  Json json{{"rubato", RUBATO_VERSION}};
  for (const auto& [library, version] : summary.engine.versions) json[library] = version;
  return json;
}

}  // namespace

std::string kernels_text(const EngineFacts::Facts& kernels) {
  std::string text;
  for (const auto& [library, name] : kernels) {
    text += text.empty() ? "" : ", ";
    text += library + " " + (name.empty() ? "unknown" : name);
  }
  return text;
}

std::string to_json(const RunSummary& summary) {
  const TrainResult& result = summary.result;
  const TrainOptions& options = summary.options;
  const auto& test = result.final_test;
  Json json{
      {"final_test_accuracy", or_null(test ? test->accuracy : std::nullopt)},
      {"best_test_accuracy", or_null(result.best_test_accuracy)},
      {"final_test_top_k_accuracy", or_null(test ? test->top_k_accuracy : std::nullopt)},
      {"final_test_loss", test ? Json(test->loss) : Json()},
      {"final_test_mse", or_null(test ? test->mse : std::nullopt)},
      {"final_test_perplexity", or_null(test ? test->perplexity : std::nullopt)},
      {"epochs", result.epochs},
      {"part_of_epoch", result.part ? Json{{"steps", result.part->steps},
                                           {"samples", result.part->samples},
                                           {"of_steps", result.part->of_steps}}
                                    : Json()},
      {"steps", result.steps},
      {"samples", result.samples},
      {"iterations", result.iterations},
      {"wall_seconds", summary.wall_seconds},
      {"train_seconds", result.train_seconds},
      {"samples_per_second",
       result.train_seconds > 0 ? static_cast<double>(result.samples) / result.train_seconds : 0},
      {"weights_sha256", summary.weights_sha256},
      {"metrics_sha256", or_null(summary.metrics_sha256)},
      {"model", summary.model},
      {"data", summary.data},
      {"trace", summary.trace},
      {"rule", options.rule},
      {"seed", options.seed},
      {"minibatch", options.minibatch_size},
      {"cores", options.cores},
      {"threads", options.threads},
      {"gradient_buffers", summary.gradient_buffers},
      {"stopped", or_null(summary.stopped)},
      {"engine", summary.engine.engine},
      {"kernels", kernels_of(summary)},
      {"versions", versions_of(summary)}};
  if (result.time) json["clock"] = clock_json(*result.time);
  if (summary.may_skip) json["skipped_steps"] = result.skipped_steps;
  return json.dump(2) + "\n";
}

}  // namespace rubato
