#include <gmock/gmock.h>

#include "hosts/rendezvous/connection.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato::rendezvous_detail {
namespace {

using testing::Pointee;

TEST(KeyValues, KeepsWhatWasSetLast) {
  KeyValues values(1000);
  EXPECT_EQ(values.find("a"), nullptr);
  values.set("a", "one");
  values.set("b", "");
  values.set("a", "two");
  EXPECT_THAT(values.find("a"), Pointee(std::string("two")));
  EXPECT_THAT(values.find("b"), Pointee(std::string()));
}

TEST(KeyValues, IsSetWhereItIsAsExpected) {
  KeyValues values(1000);
  EXPECT_EQ(values.compare_set("a", "some", "one"), "some");
  EXPECT_EQ(values.find("a"), nullptr);
  EXPECT_EQ(values.compare_set("a", "", "one"), "one");
  EXPECT_EQ(values.compare_set("a", "", "two"), "one");
  EXPECT_EQ(values.compare_set("a", "two", "three"), "one");
  EXPECT_EQ(values.compare_set("a", "one", "two"), "two");
  EXPECT_THAT(values.find("a"), Pointee(std::string("two")));
}

TEST(KeyValues, Counts) {
  KeyValues values(1000);
  EXPECT_EQ(values.add("n", 1), 1);
  EXPECT_EQ(values.add("n", 5), 6);
  EXPECT_EQ(values.add("n", -10), -4);
  EXPECT_THAT(values.find("n"), Pointee(std::string("-4")));
  values.set("text", "x");
  EXPECT_NE(error_of([&] { values.add("text", 1); }), "no error");
  values.set("n", "9223372036854775807");
  EXPECT_THAT(error_of([&] { values.add("n", 1); }), HasSubstr("accepted: a sum"));
  EXPECT_THAT(values.find("n"), Pointee(std::string("9223372036854775807")));
}

// To the last byte: an entry takes 128 bytes besides its key and its value.
TEST(KeyValues, HasRoomForWhatJustFits) {
  KeyValues values(1000);
  EXPECT_NE(error_of([&] { values.set("a", std::string(872, 'x')); }), "no error");
  EXPECT_EQ(error_of([&] { values.set("a", std::string(871, 'x')); }), "no error");
}

// What is replaced leaves room; what does not fit changes nothing.
TEST(KeyValues, HasALimit) {
  KeyValues values(2000);
  for (int i = 0; i < 100; ++i) values.set("a", std::string(1500, 'x'));
  EXPECT_THAT(error_of([&] { values.set("b", std::string(500, 'x')); }),
              HasSubstr("the store is full"));
  EXPECT_THAT(error_of([&] { values.compare_set("b", "", std::string(500, 'x')); }),
              HasSubstr("the store is full"));
  EXPECT_EQ(values.find("b"), nullptr);
  EXPECT_THAT(error_of([&] { values.set("a", std::string(1900, 'x')); }),
              HasSubstr("the store is full"));
  EXPECT_THAT(values.find("a"), Pointee(std::string(1500, 'x')));
  values.set("a", "");
  values.set("b", std::string(500, 'x'));
  // Entries count, too, however small they are.
  EXPECT_THAT(error_of([&] {
                for (int i = 0; i < 100; ++i) values.set(std::to_string(i), "");
              }),
              HasSubstr("the store is full"));
}

}  // namespace
}  // namespace rubato::rendezvous_detail
