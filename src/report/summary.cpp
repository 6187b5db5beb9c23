#include <nlohmann/json.hpp>

#include <rubato/report/summary.hpp>

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

Json or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

}  // namespace

std::string to_json(const RunSummary& summary) {
  const TrainResult& result = summary.result;
  const TrainOptions& options = summary.options;
  const auto& test = result.final_test;
  Json json{
      {"final_test_accuracy", or_null(test ? test->accuracy : std::nullopt)},
      {"best_test_accuracy", or_null(result.best_test_accuracy)},
      {"final_test_top_k_accuracy", or_null(test ? test->top_k_accuracy : std::nullopt)},
      {"final_test_loss", test ? Json(test->loss) : Json()},
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
      {"model", summary.model},
      {"data", summary.data},
      {"trace", summary.trace},
      {"rule", options.rule},
      {"seed", options.seed},
      {"minibatch", options.minibatch_size},
      {"cores", options.cores},
      {"threads", options.threads},
      {"gradient_buffers", summary.gradient_buffers},
      {"stopped", summary.stopped.empty() ? Json() : Json(summary.stopped)},
      {"kernels",
       {{"wanted", summary.kernels_wanted},
        {"cpu", choice_name(kInstructionSets, cpu_instruction_set())},
        {"openblas", or_null(summary.kernels.openblas)},
        {"aten", or_null(summary.kernels.aten)},
        {"onednn", or_null(summary.kernels.onednn)},
        {"openblas_by_itself", or_null(summary.kernel_start ? summary.kernel_start->openblas_before
                                                            : summary.kernels.openblas)}}},
      {"versions",
       {{"rubato", summary.versions.rubato},
        {"torch", summary.versions.torch},
        {"onetbb", summary.versions.onetbb},
        {"blas", summary.versions.blas}}}};
  if (summary.precision == Precision::fp16) json["skipped_steps"] = result.skipped_steps;
  return json.dump(2) + "\n";
}

}  // namespace rubato
