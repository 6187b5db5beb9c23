#include <gmock/gmock.h>

#include <rubato/base/error.hpp>

#include "runs/experiment/design/design.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

RunConfiguration with(const char* budget) {
  RunConfiguration configuration;
  apply_budget(parse_budget(budget), configuration);
  return configuration;
}

TEST(RunBudget, SetsTheOptionThatEndsARun) {
  EXPECT_EQ(with("epochs=4").epochs, 4);
  EXPECT_EQ(with("iterations=2.5").iterations, 2.5);
  EXPECT_EQ(with("samples=1000").samples, 1000);
  EXPECT_EQ(with("samples=1000").clock, Clock::real);
}

TEST(RunBudget, SetsTheClockThatItCountsOn) {
  EXPECT_EQ(with("hours=3").hours, 3);
  EXPECT_EQ(with("hours=3").clock, Clock::modelled);
  EXPECT_EQ(with("money=12").money, 12);
  EXPECT_EQ(with("money=12").clock, Clock::modelled);
}

TEST(RunBudget, RefusesWhatItsOptionDoes) {
  EXPECT_THAT(error_of([] { return parse_budget("epochs=0"); }), HasSubstr("from 1"));
  EXPECT_THAT(error_of([] { return parse_budget("epoch=1"); }),
              HasSubstr("did you mean 'epochs'?"));
  EXPECT_THAT(error_of([] { return parse_budget("epochs=1,hours=2"); }),
              HasSubstr("more than one"));
}

TEST(RunBudget, IsSaidInWords) {
  EXPECT_EQ(describe(parse_budget("epochs=4")), "4 epochs");
  EXPECT_EQ(describe(parse_budget("epochs=1")), "1 epoch");
  EXPECT_EQ(describe(parse_budget("hours=2.50")), "2.5 virtual hours");
}

}  // namespace
}  // namespace rubato
