#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/command_test.hpp"
#include "support/idx_images.hpp"

namespace rubato::test {

/// The program in a folder with a small data set of ten easy classes: 320 training images and 100
/// test images of 12 x 12.
class SmallTraining : public CommandTest {
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
};

}  // namespace rubato::test
