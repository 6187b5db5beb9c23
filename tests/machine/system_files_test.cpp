#include <gtest/gtest.h>

#include "base/machine/machine_facts.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::TempFolder;

TEST(BootId, IsWhatTheKernelGives) {
  const TempFolder root;
  EXPECT_EQ(boot_id(root.path()), "");
  root.write("proc/sys/kernel/random/boot_id", "9c5c6f0e-6c3a\n");
  EXPECT_EQ(boot_id(root.path()), "9c5c6f0e-6c3a");
}

}  // namespace
}  // namespace rubato
