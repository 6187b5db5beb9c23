#include "base/core/product.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "support/matchers.hpp"

namespace rubato {
namespace {

void append(std::string& text, char letter) {
  text += letter;
}

TEST(EachWithEach, ChangesTheValuesFaster) {
  const std::vector<std::string> items{"1", "2"};
  const std::vector<char> values{'a', 'b', 'c'};
  EXPECT_THAT(each_with_each(items, values, append),
              ElementsAre("1a", "1b", "1c", "2a", "2b", "2c"));
}

TEST(EachWithEach, IsEmptyWithoutValues) {
  EXPECT_THAT(each_with_each(std::vector<std::string>{"1"}, std::vector<char>{}, append),
              IsEmpty());
}

}  // namespace
}  // namespace rubato
