#include <gmock/gmock.h>

#include <rubato/core/spec.hpp>

#include "support/error_of.hpp"

namespace rubato {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Spec, IsANameAlone) {
  Spec spec("cosine");
  EXPECT_EQ(spec.name(), "cosine");
  EXPECT_FALSE(spec.has("total"));
  EXPECT_EQ(spec.real("total", 3.5, kPositive), 3.5);
  EXPECT_EQ(spec.whole("every", 7, 1, 9), 7);
  EXPECT_TRUE(spec.flag("nesterov", true));
  EXPECT_EQ(spec.text("mode", "min"), "min");
  EXPECT_THAT(spec.reals("at", kPositive), IsEmpty());
  spec.finish();
}

TEST(Spec, ReadsArgumentsOfEveryKind) {
  Spec spec("x:total=0.5,every=4,nesterov=false,mode=max,at=1/2.5/30");
  EXPECT_EQ(spec.name(), "x");
  EXPECT_TRUE(spec.has("every"));
  EXPECT_EQ(spec.real("total", 3, kPositive), 0.5);
  EXPECT_EQ(spec.whole("every", 7, 1, 9), 4);
  EXPECT_FALSE(spec.flag("nesterov", true));
  EXPECT_EQ(spec.text("mode", "min"), "max");
  EXPECT_THAT(spec.reals("at", kPositive), ElementsAre(1, 2.5, 30));
  spec.finish();
}

TEST(Spec, WithoutANameIsNotNamed) {
  Spec spec(":rate=2,speed=1");
  EXPECT_EQ(spec.name(), "");
  EXPECT_EQ(error_of([&] { static_cast<void>(spec.real("rate", 0, kShare)); }),
            "rate: '2' is out of range; accepted: a number from 0 to 1");
  EXPECT_EQ(error_of([&] { spec.finish(); }), "unknown argument 'speed'; accepted: rate");
  EXPECT_EQ(error_of([&] { static_cast<void>(Spec(":a=1,a=2")); }), "'a' is given twice");
}

TEST(Spec, RejectsWhatIsMalformed) {
  const auto error = [](std::string_view text) {
    return error_of([&] { static_cast<void>(Spec(text)); });
  };
  for (const std::string_view text : {"x:", "x:a", "x:=1", "x:a=", "x:a=1,,b=2"}) {
    EXPECT_EQ(error(text),
              "'" + std::string(text) + "' is malformed; accepted: x:NAME=VALUE,NAME=VALUE");
  }
  EXPECT_EQ(error("x:a=1,a=2"), "x: 'a' is given twice");
}

TEST(Spec, RejectsWrongValuesByName) {
  const auto error = [](std::string_view text, auto read) {
    Spec spec(text);
    return error_of([&] { read(spec); });
  };
  EXPECT_EQ(error("x:a=0", [](Spec& s) { static_cast<void>(s.real("a", 1, kPositive)); }),
            "x: a: '0' is out of range; accepted: a number greater than 0");
  EXPECT_EQ(error("x:a=9", [](Spec& s) { static_cast<void>(s.whole("a", 1, 0, 8)); }),
            "x: a: '9' is out of range; accepted: a whole number from 0 to 8");
  EXPECT_EQ(error("x:a=1", [](Spec& s) { static_cast<void>(s.flag("a", true)); }),
            "x: a: '1' is neither true nor false; accepted: true, false");
  EXPECT_EQ(error("x:a=1/b", [](Spec& s) { static_cast<void>(s.reals("a", kPositive)); }),
            "x: a: 'b' is no number; accepted: a number greater than 0");
}

TEST(Spec, RejectsArgumentsThatNobodyReads) {
  Spec spec("x:totl=1");
  static_cast<void>(spec.real("total", 1, kPositive));
  static_cast<void>(spec.real("floor", 1, kPositive));
  EXPECT_EQ(error_of([&] { spec.finish(); }),
            "unknown argument of x 'totl'; did you mean 'total'? accepted: total, floor");
  EXPECT_EQ(error_of([] { Spec("x:a=1").finish(); }), "x takes no arguments, but has 'a'");
  EXPECT_EQ(error_of([] { Spec("x").require("at", "30/60"); }),
            "x needs a 'at'; accepted: x:at=30/60");
}

TEST(Spec, RefusesWhatDoesNothing) {
  const Spec spec("lbsgd:warmup=lars,epochs=3");
  EXPECT_EQ(test::error_of([&] { spec.refuse("ramp", "does nothing"); }), "no error");
  EXPECT_EQ(test::error_of([&] { spec.refuse("epochs", "does nothing with warmup=lars"); }),
            "lbsgd: epochs: does nothing with warmup=lars");
}

}  // namespace
}  // namespace rubato
