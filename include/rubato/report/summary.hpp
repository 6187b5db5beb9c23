#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <rubato/machine/kernels.hpp>
#include <rubato/report/engine_facts.hpp>
#include <rubato/train/records.hpp>
#include <rubato/train/trainer.hpp>

namespace rubato {

/// What a run came to.
struct RunSummary {
  TrainResult result;
  TrainOptions options;
  EngineFacts engine;
  /// "native" or "portable".
  std::string kernels_wanted = "native";
  /// Where the program was started again for its kernels.
  std::optional<KernelStart> kernel_start;
  std::string model;
  std::string data;
  std::string trace;
  std::string weights_sha256;
  /// Of metrics.jsonl when the run ended; empty where it has none.
  std::string metrics_sha256{};
  /// From the first step to the last evaluation.
  double wall_seconds = 0;
  std::int64_t gradient_buffers = 0;
  /// Whether steps may be skipped, as they are where the loss scale adapts itself.
  bool may_skip = false;
  /// Why it ended early: the message of the error; empty for a run that went to its end.
  std::string stopped;
};

/// The summary as the JSON text of summary.json (docs/records.md). Accuracies are shares, 0 to 1;
/// what the run has not (an accuracy without a test set) is null.
[[nodiscard]] std::string to_json(const RunSummary& summary);

}  // namespace rubato
