#include "result_state.hpp"

namespace rubato {

void visit_result(StateVisitor& state, TrainResult& result) {
  state.count("skipped_steps", result.skipped_steps);
  state.value("train_seconds", result.train_seconds);
  if (state.has("final_test.samples", result.final_test.has_value())) {
    if (!result.final_test) result.final_test.emplace();
    Evaluation& test = *result.final_test;
    state.count("final_test.samples", test.samples);
    state.value("final_test.loss", test.loss);
    state.optional("final_test.accuracy", test.accuracy);
    state.optional("final_test.top_k_accuracy", test.top_k_accuracy);
    state.optional("final_test.mse", test.mse);
    state.optional("final_test.perplexity", test.perplexity);
  }
  state.optional("best_test_accuracy", result.best_test_accuracy);
  if (state.has("stopped", !result.stopped.empty())) state.text("stopped", result.stopped);
}

void visit_part(StateVisitor& state, std::optional<EpochPart>& part) {
  if (!state.has("part.steps", part.has_value())) return;
  if (!part) part.emplace();
  state.count("part.steps", part->steps);
  state.count("part.samples", part->samples);
  state.count("part.of_steps", part->of_steps);
}

}  // namespace rubato
