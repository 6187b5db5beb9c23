#include <gmock/gmock.h>

#include <rubato/machine/instruction_set.hpp>
#include <rubato/machine/openblas.hpp>

namespace rubato {
namespace {

using testing::IsEmpty;

constexpr auto kSse = InstructionSet::sse;
constexpr auto kAvx = InstructionSet::avx;
constexpr auto kAvx2 = InstructionSet::avx2;
constexpr auto kAvx512 = InstructionSet::avx512;

OpenBlas with_core(std::string core) {
  return {.core = std::move(core), .config = "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH Prescott"};
}

TEST(OpenBlas, KnowsTheInstructionSetsOfItsCores) {
  EXPECT_EQ(openblas_instruction_set("Prescott"), kSse);
  EXPECT_EQ(openblas_instruction_set("Nehalem"), kSse);
  EXPECT_EQ(openblas_instruction_set("Opteron_SSE3"), kSse);
  EXPECT_EQ(openblas_instruction_set("Sandybridge"), kAvx);
  EXPECT_EQ(openblas_instruction_set("Haswell"), kAvx2);
  EXPECT_EQ(openblas_instruction_set("ZEN"), kAvx2);
  EXPECT_EQ(openblas_instruction_set("SkylakeX"), kAvx512);
  EXPECT_EQ(openblas_instruction_set("Cooperlake"), kAvx512);
  EXPECT_EQ(openblas_instruction_set("SapphireRapids"), kAvx512);
  EXPECT_EQ(openblas_instruction_set("POWER9"), std::nullopt);
  EXPECT_EQ(openblas_instruction_set(""), std::nullopt);
}

TEST(OpenBlas, TheCoreForAnInstructionSetNeedsJustThat) {
  for (const InstructionSet set : {kAvx, kAvx2, kAvx512}) {
    EXPECT_EQ(openblas_instruction_set(openblas_core(set)), set);
  }
  EXPECT_THAT(openblas_core(kSse), IsEmpty());
}

TEST(OpenBlas, IsCorrectedWhereItTookLess) {
  EXPECT_EQ(better_openblas_core(with_core("Prescott"), kAvx512), "SkylakeX");
  EXPECT_EQ(better_openblas_core(with_core("Prescott"), kAvx2), "Haswell");
  EXPECT_EQ(better_openblas_core(with_core("Nehalem"), kAvx), "Sandybridge");
  EXPECT_EQ(better_openblas_core(with_core("Zen"), kAvx512), "SkylakeX");
}

TEST(OpenBlas, IsLeftAloneWhereItIsRightOrNotKnown) {
  EXPECT_THAT(better_openblas_core(with_core("Prescott"), kSse), IsEmpty());
  EXPECT_THAT(better_openblas_core(with_core("Zen"), kAvx2), IsEmpty());
  EXPECT_THAT(better_openblas_core(with_core("Cooperlake"), kAvx512), IsEmpty());
  EXPECT_THAT(better_openblas_core(with_core("A64FX"), kAvx512), IsEmpty());
  // One that was built for one CPU has no other kernels.
  EXPECT_THAT(better_openblas_core({.core = "Prescott", .config = "OpenBLAS 0.3.21"}, kAvx512),
              IsEmpty());
}

TEST(OpenBlas, IsNotThereInAProgramWithoutIt) {
  EXPECT_FALSE(loaded_openblas());
}

}  // namespace
}  // namespace rubato
