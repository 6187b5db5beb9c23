#include <gmock/gmock.h>

#include "runs/experiment/design/value_list.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

TEST(Labels, AreNamesOfFiles) {
  EXPECT_THAT(labels_of("trace", {"data/a100.csv", "128", "elastic", "spot:most=4,seed=1"}),
              ElementsAre("a100", "128", "elastic", "spot:most=4,seed=1"));
  EXPECT_THAT(labels_of("data", {"digits", "mnist:/data/fashion-mnist", "mnist:mnist.d/"}),
              ElementsAre("digits", "fashion-mnist", "mnist.d"));
  EXPECT_THAT(labels_of("lr", {"0.1"}), ElementsAre("0.1"));
}

TEST(Labels, TellValuesApart) {
  EXPECT_THAT(labels_of("trace", {"a/t.csv", "b/t.csv", "c/u.csv"}),
              ElementsAre("a/t.csv", "b/t.csv", "u"));
}

TEST(Labels, OfFunctionsOfPythonsAreTheirNames) {
  EXPECT_THAT(labels_of("rule", {"constant", "own:name=log2", "own"}),
              ElementsAre("constant", "log2", "own"));
  EXPECT_THAT(labels_of("rule", {"linear", "own:name=linear"}),
              ElementsAre("linear", "own:name=linear"));
}

TEST(Slug, IsAPartOfAFilesName) {
  EXPECT_EQ(slug("adascale:smoothing=0.9,ramp=2"), "adascale-smoothing-0.9-ramp-2");
  EXPECT_EQ(slug("../a b/c"), "..-a-b-c");
  EXPECT_EQ(slug(std::string(100, 'x')).size(), 60U);
}

}  // namespace
}  // namespace rubato
