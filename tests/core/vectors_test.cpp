#include "base/core/vectors.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "support/matchers.hpp"

namespace rubato {
namespace {

void append(std::string& text, char letter) {
  text += letter;
}

struct Named {
  std::string name;
  int number = 0;
};

TEST(VectorOf, TakesAMemberOrAFunctionOfEachItem) {
  const std::vector<Named> items{{"a", 1}, {"b", 2}};
  EXPECT_THAT(vector_of(items, &Named::number), ElementsAre(1, 2));
  EXPECT_THAT(vector_of(items, [](const Named& item) { return item.name + "!"; }),
              ElementsAre("a!", "b!"));
  const std::vector<std::string_view> names = vector_of<std::string_view>(items, &Named::name);
  EXPECT_EQ(names.front().data(), items.front().name.data()) << "it is a view of the item";
  EXPECT_THAT(vector_of(std::vector<Named>{}, &Named::number), IsEmpty());
}

TEST(PointersTo, AreThoseToTheItemsThatAreWanted) {
  std::vector<Named> items{{"a", 1}, {"b", 2}, {"c", 3}};
  const auto odd = [](const Named& item) { return item.number % 2 == 1; };
  const std::vector<Named*> found = pointers_to(items, odd);
  EXPECT_THAT(found, ElementsAre(&items[0], &items[2]));
  const std::vector<Named>& constant = items;
  const std::vector<const Named*> same = pointers_to(constant, odd);
  EXPECT_EQ(same.size(), 2U);
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
