#include "run_messages.hpp"

#include <cstdint>

#include <fmt/format.h>

#include "base/core/text/hour.hpp"
#include "clients/app/line/modelled_time.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/report/progress.hpp"

namespace rubato::app {

namespace {

// Returns how much was trained: "3 epochs", "5 of 48 steps of epoch 1", "1 epoch and 5 of 48 steps
// of epoch 2".
std::string epochs_of(const TrainResult& result) {
  std::string whole = fmt::format("{} epoch{}", result.epochs, result.epochs == 1 ? "" : "s");
  if (!result.part) return whole;
  const std::string part = fmt::format("{} of {} steps of epoch {}", result.part->steps,
                                       result.part->of_steps, result.epochs + 1);
  return result.epochs == 0 ? part : fmt::format("{} and {}", whole, part);
}

// Returns a line such as "modelled time 2:13:05, 41.2 core-hours, 12.36 of money, idle 10:00, lost
// 31 s, restarting 1:00, 2 restarts".
std::string clock_words(const ClockTime& time) {
  std::string text = fmt::format("modelled time {}, {:.4g} core-hours", modelled_time(time.seconds),
                                 time.core_seconds / kSecondsOfHour);
  if (time.money > 0) text += fmt::format(", {:.4g} of money", time.money);
  if (time.idle_seconds > 0) text += fmt::format(", idle {}", modelled_time(time.idle_seconds));
  if (time.lost_seconds > 0) text += fmt::format(", lost {}", modelled_time(time.lost_seconds));
  if (time.restart_seconds > 0) {
    text += fmt::format(", restarting {}", modelled_time(time.restart_seconds));
  }
  if (time.restarts > 0) {
    text += fmt::format(", {} restart{}", time.restarts, time.restarts == 1 ? "" : "s");
  }
  return text + "\n";
}

// Returns the engine and kernels that computed the weights, and the hash of the weights.
std::string origin_of(const RunSummary& summary) {
  std::string text = fmt::format("computed by {}", summary.engine.engine);
  if (!summary.engine.kernels.empty()) {
    text += fmt::format(", kernels {}", kernels_text(summary.engine.kernels));
  }
  return text + fmt::format(", with {} gradient buffers\nweights have SHA-256 {}\n",
                            summary.gradient_buffers, summary.weights_sha256);
}

}  // namespace

std::string opening(const RunConfiguration& run, const Workload& workload, const RunSteps& steps) {
  const CoreRange range = cores_of(steps, run);
  const std::string cores = range.fewest == range.most
                                ? fmt::to_string(range.most)
                                : fmt::format("{} to {}", range.fewest, range.most);
  const std::string scaling = scaling_of(steps, run);
  return fmt::format(
      "{}, trace {}{}{}\n"
      "rule {}, lr {} at batch {}, {}, minibatch {}, {} cores on {} threads, seed {}\n",
      workload.description(), source_of(steps),
      scaling.empty() ? "" : fmt::format(" ({})", scaling),
      run.clock == Clock::real ? "" : ", modelled time", run.rule, run.learning_rate,
      run.reference_batch, run.optimizer, run.minibatch, cores, run.threads, run.seed);
}

std::string resumption(const TrainResult& result,
                       const std::optional<CheckpointFolder::Found>& from,
                       const std::optional<std::filesystem::path>& kept_in) {
  if (!from) return "there is no checkpoint yet: the run starts over\n";
  std::string text = fmt::format("continuing after step {} ({} epochs are complete), from {}\n",
                                 result.steps, result.epochs, from->file.string());
  if (kept_in) {
    text += fmt::format(
        "the steps after step {} are kept in {}, a run of its own that --resume can continue, "
        "too\n",
        result.steps, kept_in->string());
  }
  return text;
}

std::string closing(const RunSummary& summary, const Run& run, bool verbose) {
  const TrainResult& result = summary.result;
  std::string text;
  if (!result.stopped.empty()) text += fmt::format("stopped: {}\n", result.stopped);
  text += fmt::format("trained {}: {} steps, {} samples in {} ({} samples/s)\n", epochs_of(result),
                      result.steps, result.samples, clock_time(summary.wall_seconds),
                      short_number(static_cast<double>(result.samples) / result.train_seconds));
  if (result.time) text += clock_words(*result.time);
  if (result.final_test && result.final_test->accuracy) {
    text += fmt::format("test accuracy {:.2f} %, best {:.2f} %\n",
                        *result.final_test->accuracy * 100, *result.best_test_accuracy * 100);
  } else if (result.final_test) {
    text += fmt::format("test loss {:.6g}\n", result.final_test->loss);
  }
  if (const BestWeights* const best = run.best(); best != nullptr && best->value()) {
    text += fmt::format("best weights are those of epoch {}, in best.{}\n",
                        best->epoch().value() + 1, run.workload().weights_suffix());
  }
  if (verbose) text += origin_of(summary);
  return text + fmt::format("run folder {}\n", run.location().path().string());
}

std::string kernel_words() {
  const auto start = kernel_start();
  return start ? describe(*start) + "\n" : std::string();
}

}  // namespace rubato::app
