#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/background_program.hpp"
#include "app/small_training.hpp"

namespace rubato::test {

/// Runs that end and go on: 10 steps and 40 minibatches in an epoch.
class ResumedTraining : public SmallTraining {
 protected:
  void SetUp() override {
    SmallTraining::SetUp();
    write_trace({8, 16, 32, 40, 64, 8, 16, 32, 40, 64});
  }

  // The options but for --epochs and --out.
  static constexpr const char* kOptions =
      "train --data=mnist:data --model=softmax --trace=trace.csv --minibatch=8 "
      "--on-trace-end=cycle --threads=2 --rule=adascale --lookahead=3 ";

  [[nodiscard]] ProgramResult train(const Words& more, const WhileRunning& during = {}) const {
    return rubato(kOptions + more, during);
  }
  [[nodiscard]] ProgramResult resume(const std::string& run, const Words& more = {}) const {
    return rubato(Words{"train", "--resume", run} + more);
  }
  // The fourth step is the first one to have a fifth core, which takes many seconds for each of its
  // minibatches.
  static std::string stuck_after_three_steps() { return " --straggler=core=4,factor=1e6"; }
  // The metrics without who computed them, and how long it took.
  [[nodiscard]] std::vector<nlohmann::json> metrics(const std::string& run) const {
    std::vector<nlohmann::json> lines = records(run);
    for (nlohmann::json& line : lines) {
      for (const char* key : {"seconds", "substeps", "cores"}) line.erase(key);
    }
    return lines;
  }
  // Waits until training is under way.
  [[nodiscard]] WhileRunning after_lines(const std::string& run, std::size_t lines,
                                         const std::function<void(pid_t)>& act) const {
    return [=, this](pid_t process, const std::filesystem::path&) {
      wait_until([&] { return metrics_lines(run) >= lines; }, {}, std::chrono::milliseconds(5));
      act(process);
    };
  }
  [[nodiscard]] std::size_t metrics_lines(const std::string& run) const {
    const std::string text = read_file(file(run) / "metrics.jsonl");
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
};

}  // namespace rubato::test
