#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/temp_folder.hpp"

namespace rubato::test {

/// The run folder `name` as a run with such test accuracies leaves it: 10 steps and 1000 samples in
/// each epoch.
inline std::filesystem::path write_run(const TempFolder& folder, const std::string& name,
                                       const std::vector<double>& accuracies,
                                       const std::string& more_metrics = {},
                                       nlohmann::json more = {}) {
  std::string metrics;
  int epoch = 0;
  for (const double accuracy : accuracies) {
    metrics += fmt::format(R"({{"kind":"step","step":{}}})"
                           "\n",
                           epoch);
    metrics +=
        nlohmann::ordered_json{
            {"kind", "epoch"},
            {"epoch", epoch},
            {"steps", 10},
            {"samples", 1000},
            {"train_loss", 0.5},
            {"test_loss", 1 - accuracy},
            {"test_accuracy", accuracy},
            {"clock",
             {{"hours", epoch + 1.5}, {"core_hours", 2 * epoch + 6}, {"money", epoch + 3}}}}
            .dump() +
        "\n";
    ++epoch;
  }
  folder.write(name + "/metrics.jsonl", metrics + more_metrics);
  nlohmann::json summary{{"epochs", epoch},
                         {"steps", 10 * epoch},
                         {"samples", 1000 * epoch},
                         {"iterations", 12.5 * epoch},
                         {"wall_seconds", 2.0},
                         {"stopped", nullptr},
                         {"final_test_accuracy", nullptr},
                         {"final_test_loss", nullptr}};
  if (!accuracies.empty()) {
    summary["final_test_accuracy"] = accuracies.back();
    summary["final_test_loss"] = 1 - accuracies.back();
  }
  if (!more.is_null()) summary.update(more);
  return folder.write(name + "/summary.json", summary.dump()).parent_path();
}

}  // namespace rubato::test
