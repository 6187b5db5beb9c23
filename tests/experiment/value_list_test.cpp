#include "runs/experiment/design/value_list.hpp"

#include <gmock/gmock.h>

#include <rubato/base/error.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

std::vector<std::string> values(const char* option, const char* text) {
  return list_values(run_option(option), text);
}

TEST(ListValues, SplitsAtCommas) {
  EXPECT_THAT(values("rule", "linear,root"), ElementsAre("linear", "root"));
  EXPECT_THAT(values("rule", "linear"), ElementsAre("linear"));
  EXPECT_THAT(values("lr", "0.10,1e-2"), ElementsAre("0.1", "0.01"));
  EXPECT_THAT(values("nesterov", "true,false"), ElementsAre("true", "false"));
}

TEST(ListValues, LeavesArgumentsWithTheirStrategy) {
  EXPECT_THAT(values("rule", "adascale:smoothing=0.9,linear"),
              ElementsAre("adascale:smoothing=0.9", "linear"));
  EXPECT_THAT(values("rule", "root,adascale:smoothing=0.9,ramp=20,linear:ramp=3"),
              ElementsAre("root", "adascale:smoothing=0.9,ramp=20", "linear:ramp=3"));
  EXPECT_THAT(values("trace", "spot:most=64,seed=1,128"),
              ElementsAre("spot:most=64,seed=1", "128"));
  EXPECT_THAT(values("fault", "core=1,step=2"), ElementsAre("core=1,step=2"));
}

TEST(ListValues, LeavesOptionsAloneWhoseValuesAreLists) {
  EXPECT_THAT(values("no-decay", "*.bias,vectors"), ElementsAre("*.bias,vectors"));
  EXPECT_THAT(values("lr-for", "*.bias=2.0,vectors=0"), ElementsAre("*.bias=2,vectors=0"));
  EXPECT_THAT(values("target-accuracy", "98,best"), ElementsAre("98,best"));
}

TEST(ListValues, ReadsRangesOfWholeNumbers) {
  EXPECT_THAT(values("seed", "1..5"), ElementsAre("1", "2", "3", "4", "5"));
  EXPECT_THAT(values("seed", "7,1..2"), ElementsAre("7", "1", "2"));
  EXPECT_THAT(values("ref-batch", "64..64"), ElementsAre("64"));
  EXPECT_THAT(error_of([] { return values("seed", "5..1"); }), HasSubstr("'5..1' is not a range"));
  EXPECT_THAT(error_of([] { return values("seed", "1.."); }),
              HasSubstr("accepted: a whole number"));
  EXPECT_THAT(error_of([] { return values("seed", "0..99999999"); }), HasSubstr("not a range"));
}

TEST(ListValues, RefusesWhatTheOptionDoes) {
  EXPECT_THAT(error_of([] { return values("rule", "linear,rot"); }),
              HasSubstr("did you mean 'root'?"));
  EXPECT_THAT(error_of([] { return values("rule", "linear,,root"); }), HasSubstr("empty value"));
  EXPECT_THAT(error_of([] { return values("epochs", "0..2"); }), HasSubstr("from 1"));
}

TEST(ListAssigned, LetsArgumentsGoOn) {
  EXPECT_THAT(list_assigned("trace=128,rule=constant"),
              ElementsAre(Assigned{"trace", "128"}, Assigned{"rule", "constant"}));
  EXPECT_THAT(list_assigned("rule=constant,trace=spot:most=4,seed=1"),
              ElementsAre(Assigned{"rule", "constant"}, Assigned{"trace", "spot:most=4,seed=1"}));
  for (const char* text : {"128", "=1", "trace="}) {
    EXPECT_THAT(error_of([&] { return list_assigned(text); }), HasSubstr("NAME=VALUE")) << text;
  }
}

}  // namespace
}  // namespace rubato
