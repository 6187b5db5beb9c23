#include <gmock/gmock.h>

#include "base/machine/instruction_set.hpp"
#include "base/machine/kernels.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using enum InstructionSet;

OpenBlas with_core(std::string core) {
  return {.core = std::move(core), .config = "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH Prescott"};
}

TEST(OpenBlas, KnowsTheInstructionSetsOfItsCores) {
  EXPECT_EQ(openblas_instruction_set("Prescott"), sse);
  EXPECT_EQ(openblas_instruction_set("Nehalem"), sse);
  EXPECT_EQ(openblas_instruction_set("Opteron_SSE3"), sse);
  EXPECT_EQ(openblas_instruction_set("Sandybridge"), avx);
  EXPECT_EQ(openblas_instruction_set("Haswell"), avx2);
  EXPECT_EQ(openblas_instruction_set("ZEN"), avx2);
  EXPECT_EQ(openblas_instruction_set("SkylakeX"), avx512);
  EXPECT_EQ(openblas_instruction_set("Cooperlake"), avx512);
  EXPECT_EQ(openblas_instruction_set("SapphireRapids"), avx512);
  EXPECT_EQ(openblas_instruction_set("POWER9"), std::nullopt);
  EXPECT_EQ(openblas_instruction_set(""), std::nullopt);
}

TEST(OpenBlas, TheCoreForAnInstructionSetNeedsJustThat) {
  for (const InstructionSet set : {avx, avx2, avx512}) {
    EXPECT_EQ(openblas_instruction_set(openblas_core(set)), set);
  }
  EXPECT_THAT(openblas_core(sse), IsEmpty());
}

TEST(OpenBlas, IsCorrectedWhereItTookLess) {
  EXPECT_EQ(better_openblas_core(with_core("Prescott"), avx512), "SkylakeX");
  EXPECT_EQ(better_openblas_core(with_core("Prescott"), avx2), "Haswell");
  EXPECT_EQ(better_openblas_core(with_core("Nehalem"), avx), "Sandybridge");
  EXPECT_EQ(better_openblas_core(with_core("Zen"), avx512), "SkylakeX");
}

TEST(OpenBlas, IsLeftAloneWhereItIsRightOrNotKnown) {
  EXPECT_THAT(better_openblas_core(with_core("Prescott"), sse), IsEmpty());
  EXPECT_THAT(better_openblas_core(with_core("Zen"), avx2), IsEmpty());
  EXPECT_THAT(better_openblas_core(with_core("Cooperlake"), avx512), IsEmpty());
  EXPECT_THAT(better_openblas_core(with_core("A64FX"), avx512), IsEmpty());
  // One that was built for one CPU has no other kernels.
  EXPECT_THAT(better_openblas_core({.core = "Prescott", .config = "OpenBLAS 0.3.21"}, avx512),
              IsEmpty());
}

TEST(OpenBlas, IsNotThereInAProgramWithoutIt) {
  EXPECT_FALSE(loaded_openblas());
}

}  // namespace
}  // namespace rubato
