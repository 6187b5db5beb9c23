#include <array>
#include <vector>

#include <gtest/gtest.h>

#include <rubato/base/state.hpp>

namespace rubato {
namespace {

TEST(Sha256OfArrays, IsThatOfTheBytesInTheirOrder) {
  // "abc" in two arrays: the digest of FIPS 180-2, appendix B.1.
  std::array<char, 2> ab{'a', 'b'};
  std::array<char, 1> c{'c'};
  const std::vector<NamedArray> abc{
      {.name = "x", .type = ElementType::u8, .shape = {2}, .data = ab.data()},
      {.name = "y", .type = ElementType::i8, .shape = {1}, .data = c.data()}};
  EXPECT_EQ(sha256_of(abc), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace rubato
