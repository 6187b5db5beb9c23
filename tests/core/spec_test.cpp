#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/spec.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

enum class Size { small, large };
constexpr std::array<Choice<Size>, 2> kSizes{{{Size::small, "small"}, {Size::large, "large"}}};
constexpr std::array<std::string_view, 2> kModes{"min", "max"};

TEST(Spec, IsANameAlone) {
  Spec spec("cosine");
  EXPECT_EQ(spec.name(), "cosine");
  EXPECT_FALSE(spec.has("total"));
  EXPECT_EQ(spec.real("total", 3.5, kPositive), 3.5);
  EXPECT_EQ(spec.whole("every", 7, 1, 9), 7);
  EXPECT_TRUE(spec.flag("nesterov", true));
  EXPECT_EQ(spec.one_of("mode", "min", kModes), "min");
  EXPECT_EQ(spec.choice("size", Size::large, kSizes), Size::large);
  EXPECT_EQ(spec.real("rate", Unset{"as it is"}, kPositive), std::nullopt);
  EXPECT_EQ(spec.whole("ramp", Unset{"at once"}, 1, 9), std::nullopt);
  EXPECT_EQ(spec.choice("other", Unset{"any"}, kSizes), std::nullopt);
  EXPECT_EQ(spec.reals("shares", Unset{"all the same"}, kPositive), std::nullopt);
  EXPECT_THAT(spec.wholes("hidden", {3, 2}, 1, 9), ElementsAre(3, 2));
  spec.finish();
}

TEST(Spec, ReadsArgumentsOfEveryKind) {
  Spec spec(
      "x:total=0.5,every=4,nesterov=false,mode=max,at=1/2.5/30,size=small,rate=2,ramp=3,hidden=4/5,"
      "other=large,shares=1/0.5");
  EXPECT_EQ(spec.name(), "x");
  EXPECT_TRUE(spec.has("every"));
  EXPECT_EQ(spec.real("total", 3, kPositive), 0.5);
  EXPECT_EQ(spec.whole("every", 7, 1, 9), 4);
  EXPECT_FALSE(spec.flag("nesterov", true));
  EXPECT_EQ(spec.one_of("mode", "min", kModes), "max");
  EXPECT_THAT(spec.reals("at", Required{"1/2"}, kPositive), ElementsAre(1, 2.5, 30));
  EXPECT_THAT(spec.reals("shares", Unset{"all the same"}, kPositive),
              Optional(ElementsAre(1, 0.5)));
  EXPECT_EQ(spec.choice("size", Size::large, kSizes), Size::small);
  EXPECT_EQ(spec.real("rate", Unset{"as it is"}, kPositive), 2);
  EXPECT_EQ(spec.whole("ramp", Unset{"at once"}, 1, 9), 3);
  EXPECT_THAT(spec.wholes("hidden", {3, 2}, 1, 9), ElementsAre(4, 5));
  EXPECT_EQ(spec.choice("other", Unset{"any"}, kSizes), Size::large);
  spec.finish();
}

TEST(Spec, WithoutANameIsNotNamed) {
  Spec spec(":rate=2,speed=1");
  EXPECT_EQ(spec.name(), "");
  EXPECT_EQ(error_of([&] { return spec.real("rate", 0, kShare); }),
            "rate: '2' is out of range; accepted: a number from 0 to 1");
  EXPECT_EQ(error_of([&] { spec.finish(); }), "unknown argument 'speed'; accepted: rate");
  EXPECT_EQ(error_of([&] { return Spec(":a=1,a=2"); }), "'a' is given twice");
}

TEST(Spec, RejectsWhatIsMalformed) {
  const auto error = [](std::string_view text) { return error_of([&] { return Spec(text); }); };
  for (const std::string_view text :
       {"x:", "x:a", "x:=1", "x:a=", "x:a=1,,b=2", "x:a=1,", "x:,a=1"}) {
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
  EXPECT_EQ(
      error("x:a=1/b", [](Spec& s) { static_cast<void>(s.reals("a", Required{"1"}, kPositive)); }),
      "x: a: 'b' is not a number; accepted: a number greater than 0");
  EXPECT_EQ(
      error("x:a=1/2/", [](Spec& s) { static_cast<void>(s.reals("a", Required{"1"}, kPositive)); }),
      "x: a: '' is empty; accepted: a number greater than 0");
  EXPECT_EQ(
      error("x:a=smal", [](Spec& s) { static_cast<void>(s.choice("a", Size::large, kSizes)); }),
      "x: a: unknown value 'smal'; did you mean 'small'? accepted: small, large");
}

TEST(Spec, RejectsArgumentsThatNobodyReads) {
  Spec spec("x:totl=1");
  static_cast<void>(spec.real("total", 1, kPositive));
  static_cast<void>(spec.real("floor", 1, kPositive));
  EXPECT_EQ(error_of([&] { spec.finish(); }),
            "unknown argument of x 'totl'; did you mean 'total'? accepted: total, floor");
  EXPECT_EQ(error_of([] { Spec("x:a=1").finish(); }), "x takes no arguments, but has 'a'");
  EXPECT_EQ(error_of([] {
              Spec other("x");
              return other.reals("at", Required{"30/60"}, kPositive);
            }),
            "x needs a 'at'; accepted: x:at=30/60");
  Spec third("x:other=1");
  EXPECT_EQ(error_of([&] { return third.whole("batch", Required{"64"}, 1, 99); }),
            "x needs a 'batch'; accepted: x:batch=64");
  Spec fourth("x:batch=7");
  EXPECT_EQ(fourth.whole("batch", Required{"64"}, 1, 99), 7);
}

TEST(Spec, DescribesWhatIsRead) {
  Spec spec = Spec::example("x");
  static_cast<void>(spec.flag("flag", true));
  static_cast<void>(spec.whole("whole", 7, 1, 9));
  static_cast<void>(spec.whole("ramp", Unset{"at once"}, 1, 9));
  static_cast<void>(spec.real("real", 0.25, kShare));
  EXPECT_EQ(spec.real("total", Required{"90"}, kPositive), 90) << "the example is its value";
  static_cast<void>(spec.real("rate", Unset{"as it is"}, kPositive));
  static_cast<void>(spec.wholes("hidden", {3, 2}, 1, 9));
  EXPECT_THAT(spec.reals("at", Required{"30/60"}, kPositive), ElementsAre(30, 60));
  static_cast<void>(spec.reals("shares", Unset{"all the same"}, kPositive));
  static_cast<void>(spec.choice("size", Size::large, kSizes));
  static_cast<void>(spec.choice("other", Unset{"any"}, kSizes));
  static_cast<void>(spec.one_of("mode", "min", kModes));
  static_cast<void>(spec.real("real", 0.25, kShare));
  std::vector<std::string> described;
  for (const Argument& argument : spec.arguments()) {
    described.push_back(std::string(argument.name)
                            .append(" ")
                            .append(choice_name(kArgumentKinds, argument.kind))
                            .append(": " + argument.accepted + " [" + argument.fallback + "|" +
                                    argument.unset + "|" + argument.example + "]"));
  }
  EXPECT_THAT(
      described,
      ElementsAre(
          "flag flag: true, false [true||]", "whole whole: a whole number from 1 to 9 [7||]",
          "ramp whole: a whole number from 1 to 9 [|at once|]",
          "real real: a number from 0 to 1 [0.25||]", "total real: a number greater than 0 [||90]",
          "rate real: a number greater than 0 [|as it is|]",
          "hidden wholes: a whole number from 1 to 9, or several with / between them [3/2||]",
          "at reals: a number greater than 0, or several with / between them [||30/60]",
          "shares reals: a number greater than 0, or several with / between them [|all the same|]",
          "size choice: small, large [large||]", "other choice: small, large [|any|]",
          "mode choice: min, max [min||]"));
  EXPECT_THAT(spec.arguments().back().choices, ElementsAre("min", "max"));
  EXPECT_EQ(Spec::example("mnist:DIR").name(), "mnist:DIR");
}

TEST(Spec, RefusesWhatDoesNothing) {
  const Spec spec("lbsgd:warmup=lars,epochs=3");
  EXPECT_EQ(error_of([&] { spec.refuse("ramp", "does nothing"); }), "no error");
  EXPECT_EQ(error_of([&] { spec.refuse("epochs", "does nothing with warmup=lars"); }),
            "lbsgd: epochs: does nothing with warmup=lars");
}

}  // namespace
}  // namespace rubato
