#include "result_state.hpp"

#include <optional>
#include <string_view>

namespace rubato {

namespace {

void put_if(State& state, std::string_view name, const std::optional<double>& value) {
  if (value) state.put(name, *value);
}

std::optional<double> get_if(const State& state, std::string_view name) {
  if (!state.has(name)) return std::nullopt;
  return state.value<double>(name);
}

}  // namespace

void put_result(State& state, const TrainResult& result) {
  state.put("skipped_steps", result.skipped_steps);
  state.put("train_seconds", result.train_seconds);
  if (const auto& test = result.final_test) {
    state.put("final_test.samples", test->samples);
    state.put("final_test.loss", test->loss);
    put_if(state, "final_test.accuracy", test->accuracy);
    put_if(state, "final_test.top_k_accuracy", test->top_k_accuracy);
    put_if(state, "final_test.mse", test->mse);
    put_if(state, "final_test.perplexity", test->perplexity);
  }
  put_if(state, "best_test_accuracy", result.best_test_accuracy);
  if (!result.stopped.empty()) state.put_text("stopped", result.stopped);
}

void put_part(State& state, const EpochPart& part) {
  state.put("part.steps", part.steps);
  state.put("part.samples", part.samples);
  state.put("part.of_steps", part.of_steps);
}

std::optional<EpochPart> part_of(const State& state) {
  if (!state.has("part.steps")) return std::nullopt;
  return EpochPart{.steps = state.count("part.steps"),
                   .samples = state.count("part.samples"),
                   .of_steps = state.count("part.of_steps")};
}

TrainResult result_of(const State& state) {
  TrainResult result;
  result.skipped_steps = state.count("skipped_steps");
  result.train_seconds = state.value<double>("train_seconds");
  if (state.has("final_test.samples")) {
    result.final_test = Evaluation{.samples = state.count("final_test.samples"),
                                   .loss = state.value<double>("final_test.loss"),
                                   .accuracy = get_if(state, "final_test.accuracy"),
                                   .top_k_accuracy = get_if(state, "final_test.top_k_accuracy"),
                                   .mse = get_if(state, "final_test.mse"),
                                   .perplexity = get_if(state, "final_test.perplexity")};
  }
  result.best_test_accuracy = get_if(state, "best_test_accuracy");
  if (state.has_text("stopped")) result.stopped = state.text("stopped");
  return result;
}

}  // namespace rubato
