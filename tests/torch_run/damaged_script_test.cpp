// Files of TorchScript that are cut off or changed: refused, or read as what they were.

#include <cstdlib>
#include <functional>
#include <string>

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include <rubato/libtorch/model.hpp>

#include "script_models.hpp"
#include "support/damaged_files.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/sizes.hpp"

namespace rubato {
namespace {

std::string small_script() {
  torch::jit::Module net("Small");
  net.register_parameter("weight", (at::arange(12).sin()).view({4, 3}).requires_grad_(), false);
  net.register_buffer("seen", at::zeros({}, at::kLong));
  net.define("def forward(self, x):\n    return torch.linear(x, self.weight)\n");
  return test::file_of(net);
}

at::Tensor output_of(const std::string& bytes) {
  return make_model(read_script(bytes, "net.pt")).forward(at::ones({2, 3}));
}

void expect_refused_or_as_it_was(
    const std::string& good, const std::function<void(const test::TakeFile& take)>& for_each_file) {
  const at::Tensor expected = output_of(good);
  // Libraries alone take a few.
  constexpr rlim_t kGigabytes = 8;
  EXPECT_EXIT(test::exit_after_reading(
                  for_each_file,
                  [&expected](const std::string& bytes) {
                    if (!at::equal(output_of(bytes), expected)) std::exit(2);
                  },
                  kGigabytes),
              testing::ExitedWithCode(0), "");
}

// Distance between two places that are tried.
const std::size_t kStep = test::cases<std::size_t>(7, 1);

TEST(DamagedScript, IsRefusedOrAsItWasCutAnywhere) {
  const std::string good = small_script();
  expect_refused_or_as_it_was(good,
                              [&](const auto& take) { test::for_each_cut(good, take, kStep); });
}

TEST(DamagedScript, IsRefusedOrAsItWasWithAnyByteChanged) {
  const std::string good = small_script();
  expect_refused_or_as_it_was(
      good, [&](const auto& take) { test::for_each_changed_byte(good, take, kStep); });
}

TEST(DamagedScript, IsRefusedByItsChecksum) {
  const std::string good = small_script();
  int by_checksum = 0;
  test::for_each_changed_byte(
      good,
      [&](const std::string& bytes) {
        const std::string error = error_of([&] { return output_of(bytes); });
        if (error == "no error") return;
        EXPECT_THAT(error, StartsWith("net.pt: cannot be read as TorchScript: "));
        if (error.find("fails its checksum; accepted: what torch.jit.script()") !=
            std::string::npos) {
          ++by_checksum;
        }
      },
      97);
  EXPECT_GT(by_checksum, 5);
}

}  // namespace
}  // namespace rubato
