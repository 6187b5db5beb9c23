#include <vector>

#include <gmock/gmock.h>

#include "loop/eigen/dense_parameters.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

// What torch.nn.Linear(3, 2) and then torch.nn.Linear(2, 1) begin with.
template <class T>
std::vector<T> drawn(InstructionSet set) {
  // torch.manual_seed() takes the lower 32 bits.
  LinearInitialValues values((std::uint64_t{1} << 32U) + 5, set);
  std::vector<T> all(11);
  const std::span<T> span(all);
  values.draw(span.first(6), span.subspan(6, 2), 3);
  values.draw(span.subspan(8, 2), span.subspan(10), 2);
  return all;
}

TEST(LinearInitialValues, AreLibtorchsWithFma) {
  for (const InstructionSet set :
       {InstructionSet::avx2, InstructionSet::avx512, InstructionSet::neon}) {
    EXPECT_THAT(drawn<float>(set),
                ElementsAre(0x1.867e84p-2F, -0x1.ba1768p-2F, 0x1.e1cc30p-2F, 0x1.7a4936p-2F,
                            0x1.f0bc64p-2F, -0x1.c548a8p-2F, -0x1.8cd3f4p-2F, 0x1.1951aep-2F,
                            -0x1.51f3d6p-1F, 0x1.65d3f6p-1F, 0x1.344002p-3F));
    EXPECT_THAT(drawn<double>(set),
                ElementsAre(0x1.4fd743e6c66b0p-3, -0x1.1c10c13df752cp-2, -0x1.491e5a11a6fbdp-3,
                            -0x1.b52de98897244p-3, -0x1.148bd4ed2d17bp-2, 0x1.9f88b334d0383p-2,
                            0x1.770cfa14a7819p-4, 0x1.042f87050e028p-2, 0x1.f71cab8e83e51p-2,
                            -0x1.0fd6c1acc6312p-4, -0x1.9aee856650e42p-3));
  }
}

TEST(LinearInitialValues, AreLibtorchsWithoutFma) {
  EXPECT_THAT(drawn<float>(InstructionSet::sse),
              ElementsAre(0x1.867e84p-2F, -0x1.ba1768p-2F, 0x1.e1cc30p-2F, 0x1.7a4938p-2F,
                          0x1.f0bc60p-2F, -0x1.c548a8p-2F, -0x1.8cd3f4p-2F, 0x1.1951acp-2F,
                          -0x1.51f3d6p-1F, 0x1.65d3f6p-1F, 0x1.344000p-3F));
  EXPECT_THAT(drawn<double>(InstructionSet::sse),
              ElementsAre(0x1.4fd743e6c66b0p-3, -0x1.1c10c13df752cp-2, -0x1.491e5a11a6fbep-3,
                          -0x1.b52de98897244p-3, -0x1.148bd4ed2d17bp-2, 0x1.9f88b334d0384p-2,
                          0x1.770cfa14a7818p-4, 0x1.042f87050e028p-2, 0x1.f71cab8e83e52p-2,
                          -0x1.0fd6c1acc6310p-4, -0x1.9aee856650e40p-3));
}

}  // namespace
}  // namespace rubato
