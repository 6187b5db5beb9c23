#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/run_program.hpp"
#include "support/idx_images.hpp"
#include "support/temp_folder.hpp"

namespace rubato::test {

/// The program in a folder with a small data set of ten easy classes: 320 training images and 100
/// test images of 12 x 12.
class SmallTraining : public testing::Test {
 protected:
  void SetUp() override {
    write_idx_images(folder_, "data", "train", 320, 12);
    write_idx_images(folder_, "data", "t10k", 100, 12);
  }
  void write_trace(const std::vector<int>& batch_sizes) const {
    std::string trace = "step,batchsize\n";
    for (std::size_t step = 0; step < batch_sizes.size(); ++step) {
      trace += fmt::format("{},{}\n", step, batch_sizes[step]);
    }
    folder_.write("trace.csv", trace);
  }
  [[nodiscard]] std::filesystem::path file(const std::string& name) const {
    return folder_.path() / name;
  }
  [[nodiscard]] nlohmann::json summary(const std::string& run) const {
    return nlohmann::json::parse(read_file(file(run) / "summary.json"));
  }
  [[nodiscard]] std::string hash(const std::string& run) const {
    return summary(run)["weights_sha256"];
  }

  TempFolder folder_;
};

}  // namespace rubato::test
