#pragma once

#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/run_program.hpp"
#include "support/temp_folder.hpp"

namespace rubato::test {

/// The program in a folder of its own.
class CommandTest : public testing::Test {
 protected:
  ProgramResult rubato(const Words& arguments, const WhileRunning& during = {}) const {
    return test::rubato(arguments, folder_.path(), during);
  }
  /// Runs a command that has to succeed, and returns what it prints.
  std::string succeeds(const Words& arguments) const {
    const ProgramResult result = rubato(arguments);
    EXPECT_EQ(result.code, 0) << testing::PrintToString(arguments.all()) << "\n" << result.err;
    return result.out;
  }
  /// Does the same, and there may be no warning either.
  [[nodiscard]] std::string printed(const Words& arguments) const {
    const ProgramResult result = rubato(arguments);
    EXPECT_EQ(result.code, 0) << testing::PrintToString(arguments.all());
    EXPECT_EQ(result.err, "");
    return result.out;
  }
  /// Runs a command that has to be refused, and returns the message.
  [[nodiscard]] std::string refusal(const Words& arguments) const {
    const ProgramResult result = rubato(arguments);
    EXPECT_EQ(result.code, 2) << testing::PrintToString(arguments.all()) << "\n" << result.err;
    EXPECT_EQ(result.out, "");
    return result.err;
  }
  [[nodiscard]] std::filesystem::path file(const std::string& name) const {
    return folder_.path() / name;
  }
  [[nodiscard]] std::string content(const std::string& name) const { return read_file(file(name)); }
  [[nodiscard]] nlohmann::json json_in(const std::string& name) const {
    return nlohmann::json::parse(content(name));
  }
  [[nodiscard]] nlohmann::json summary(const std::string& run) const {
    return json_in(run + "/summary.json");
  }
  [[nodiscard]] std::string hash(const std::string& run) const {
    return summary(run)["weights_sha256"];
  }

  /// The lines of a run's metrics, or those of one kind.
  [[nodiscard]] std::vector<nlohmann::json> records(const std::string& run,
                                                    std::string_view kind = "") const {
    std::vector<nlohmann::json> found;
    std::istringstream lines(content(run + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      nlohmann::json record = nlohmann::json::parse(line);
      if (kind.empty() || record["kind"] == kind) found.push_back(std::move(record));
    }
    return found;
  }

  TempFolder folder_;
};

}  // namespace rubato::test
