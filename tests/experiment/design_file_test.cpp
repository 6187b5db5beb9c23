#include "runs/experiment/design/design_file.hpp"

#include <gmock/gmock.h>

#include <rubato/base/error.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

constexpr const char* kFile = R"(model = "softmax"
epochs = 3
[axes]
seed = "1..3"
rule = ["linear", "adascale:smoothing=0.9"]
lr = [0.01, 0.10]
trace = [128, "elastic"]
[compare]
budget = "iterations=100"
tune = "momentum=0.5,0.9"
tune-seeds = 1
baseline = ["trace=spot:most=4,seed=1", "rule=root"]
target = 92.5
margin = "baseline"
jobs = 3
)";

std::string error_in(const std::string& text) {
  return error_of([&] { return parse_design(text, "d.toml"); });
}

TEST(DesignFile, SaysAll) {
  const DesignFile file = parse_design(kFile, "d.toml");
  const Design& design = file.design;
  EXPECT_EQ(design.base.model, "softmax");
  EXPECT_TRUE(file.says_epochs);
  EXPECT_EQ(file.jobs, 3);
  // In the order of the table of options, the seed last.
  ASSERT_EQ(design.axes.size(), 4U);
  EXPECT_EQ(design.axes[0], (Axis{"trace", {"128", "elastic"}}));
  EXPECT_EQ(design.axes[1], (Axis{"rule", {"linear", "adascale:smoothing=0.9"}}));
  EXPECT_EQ(design.axes[2], (Axis{"lr", {"0.01", "0.1"}}));
  EXPECT_EQ(design.axes[3], (Axis{"seed", {"1", "2", "3"}}));
  EXPECT_EQ(design.budget, (RunBudget{"iterations", "100"}));
  EXPECT_EQ(design.tuning, (Tuning{"momentum", {"0.5", "0.9"}}));
  EXPECT_EQ(design.tuning_seeds, 1);
  EXPECT_THAT(design.baseline,
              ElementsAre(Assigned{"trace", "spot:most=4,seed=1"}, Assigned{"rule", "root"}));
  EXPECT_EQ(design.target, 92.5);
  EXPECT_EQ(design.margin, Margin());
}

TEST(DesignFile, SaysWhatIsTuned) {
  for (const char* const text : {"lr", "lr=0.1,0.2", "lr=0.1,0.2,only"}) {
    Design design;
    design.tuning = parse_tuning(text);
    EXPECT_EQ(text_of(*design.tuning), text);
    const DesignFile read = parse_design(to_toml(design, "/folder"), "d.toml");
    EXPECT_EQ(read.design.tuning, design.tuning) << text;
    EXPECT_FALSE(read.never_tunes);
  }
  Design each;
  each.tuning = parse_tuning("lr");
  each.tune_for = TuneFor::each;
  each.rates = 4;
  EXPECT_EQ(parse_design(to_toml(each, "/folder"), "d.toml").design, each);
  EXPECT_TRUE(parse_tuning("lr").is_search());
  EXPECT_TRUE(parse_tuning("lr=0.1,0.2,only").is_closed);
  const DesignFile never = parse_design("[compare]\ntune = \"never\"\n", "d.toml");
  EXPECT_TRUE(never.never_tunes);
  EXPECT_FALSE(never.design.tuning);
}

TEST(SearchRateByDefault, IsForDesignsThatSayNoRate) {
  Design design;
  search_rate_by_default(design);
  ASSERT_TRUE(design.tuning);
  EXPECT_EQ(text_of(*design.tuning), "lr");
  // It is written, as a design file says all rates.
  EXPECT_EQ(parse_design(to_toml(design, "/folder"), "d.toml").design.tuning, design.tuning);
  const auto searches = [](Design other) {
    const std::optional<Tuning> before = other.tuning;
    search_rate_by_default(other);
    return other.tuning != before;
  };
  EXPECT_FALSE(searches(parse_design("lr = 0.01\n", "d.toml").design));
  EXPECT_FALSE(searches(parse_design("[axes]\nlr = [0.01, 0.1]\n", "d.toml").design));
  EXPECT_FALSE(searches(parse_design("[compare]\nbaseline = \"lr=0.1\"\n", "d.toml").design));
  EXPECT_FALSE(searches(parse_design("[compare]\ntune = \"momentum=0.5,0.9\"\n", "d.toml").design));
}

TEST(DesignFile, IsReadAsItWasWritten) {
  const test::TempFolder folder;
  const Design design = parse_design(kFile, "d.toml").design;
  const auto file = folder.write("design.toml", to_toml(design, folder.path()));
  EXPECT_EQ(read_design(file).design, design);
  Design number = design;
  number.margin = parse_margin("0.5");
  EXPECT_EQ(number.margin->amount, 0.5);
  EXPECT_EQ(read_design(folder.write("d.toml", to_toml(number, folder.path()))).design, number);
  const Design simple;
  const auto plain = folder.write("plain.toml", to_toml(simple, folder.path()));
  EXPECT_EQ(read_design(plain).design, simple);
}

TEST(DesignFile, HasPathsInItsFolder) {
  const test::TempFolder folder;
  const std::string text = "[axes]\ntrace = [\"a.csv\", \"/b.csv\"]\n";
  const Design design = read_design(folder.write("d.toml", text)).design;
  EXPECT_THAT(values_of(design, "trace"),
              ElementsAre((folder.path() / "a.csv").string(), "/b.csv"));
  EXPECT_THAT(to_toml(design, folder.path()), HasSubstr(R"(trace = ["a.csv", "/b.csv"])"));
}

TEST(DesignFile, NamesWhatIsWrong) {
  EXPECT_THAT(error_in("[axis]\n"),
              HasSubstr("d.toml:1: unknown table 'axis'; did you mean 'axes'"));
  EXPECT_THAT(error_in("[axes]\nrul = [\"root\"]\n"), HasSubstr("d.toml:2: unknown option 'rul'"));
  EXPECT_THAT(error_in("[axes]\nseed = [1, 1]\n"), HasSubstr("1 is listed twice"));
  EXPECT_THAT(error_in("[axes]\nseed = []\n"), HasSubstr("'seed' is an empty list"));
  EXPECT_THAT(error_in("[axes]\nseed = [[1]]\n"), HasSubstr("an array, which no option accepts"));
  EXPECT_THAT(error_in("[axes]\nseed = [1, \"x\"]\n"), HasSubstr("d.toml:2: seed: \"x\""));
  EXPECT_THAT(error_in("seed = [1, 2]\n"),
              HasSubstr("accepted: one value, or the list below [axes]"));
  EXPECT_THAT(error_in("[compare]\nbudgt = \"epochs=1\"\n"), HasSubstr("did you mean 'budget'"));
  EXPECT_THAT(error_in("[compare]\njobs = 0\n"), HasSubstr("d.toml:2: jobs: "));
  EXPECT_THAT(
      error_in("[compare]\nmargin = \"best\"\n"),
      HasSubstr("d.toml:2: margin: 'best' is not a margin; accepted: baseline, or a number"));
  EXPECT_THAT(error_in("[compare]\nmargin = 0\n"), HasSubstr("a number greater than 0"));
  EXPECT_THAT(error_in("[compare]\n[compare.more]\n"),
              HasSubstr("a table, which no option accepts"));
}

TEST(SetValues, MakesAxesAndTakesThemBack) {
  Design design;
  set_values(design, "seed", {"1", "2"});
  set_values(design, "rule", {"root", "linear"});
  set_values(design, "data", {"digits"});
  EXPECT_THAT(values_of(design, "seed"), ElementsAre("1", "2"));
  EXPECT_TRUE(is_axis(design, "rule"));
  EXPECT_FALSE(is_axis(design, "data"));
  set_values(design, "rule", {"root"});
  EXPECT_FALSE(is_axis(design, "rule"));
  EXPECT_EQ(design.base.rule, "root");
}

TEST(RequireConsistent, RefusesContradictions) {
  Design tuned;
  tuned.tuning = parse_tuning("lr=0.1,0.2");
  EXPECT_EQ(error_of([&] { require_consistent(tuned); }), "no error");
  tuned.baseline = parse_baseline("rule=root,lr=0.1");
  EXPECT_THAT(error_of([&] { require_consistent(tuned); }), HasSubstr("--baseline: lr is tuned"));
  tuned.baseline = parse_baseline("rule=root,momentum=0");
  EXPECT_EQ(error_of([&] { require_consistent(tuned); }), "no error");
  set_values(tuned, "lr", {"0.1", "0.2"});
  Design repeated = tuned;
  repeated.tuning.reset();
  repeated.rates = parse_rates("4");
  EXPECT_THAT(error_of([&] { require_consistent(repeated); }), HasSubstr("--rates: lr takes"));
  EXPECT_THAT(error_of([] { return parse_rates("6"); }), HasSubstr("6 is not a power of two"));
  EXPECT_THAT(error_of([&] { require_consistent(tuned); }), HasSubstr("--tune: lr"));
  Design budget;
  budget.budget = parse_budget("epochs=2");
  set_values(budget, "epochs", {"1", "2"});
  EXPECT_THAT(error_of([&] { require_consistent(budget); }), HasSubstr("the same for all"));
  // An experiment without end on a guess of how long steps take.
  for (const auto& [amount, accepted] :
       {std::pair("hours=2", "--cluster substep=SECONDS"), {"money=9", "and --price"}}) {
    Design timed;
    timed.budget = parse_budget(amount);
    EXPECT_THAT(error_of([&] { require_consistent(timed); }),
                AllOf(HasSubstr("the time of a step is not known"), HasSubstr(accepted)));
    set_values(timed, "cluster", {"substep=1", "substep=2"});
    EXPECT_EQ(error_of([&] { require_consistent(timed); }), "no error");
  }
  EXPECT_THAT(error_of([] { return parse_tuning("rule=root,linear"); }), HasSubstr("not tuned"));
  EXPECT_THAT(error_of([] { return parse_tuning("lr=0.1"); }), HasSubstr("one value only"));
  EXPECT_THAT(error_of([] { return parse_tuning("momentum"); }), HasSubstr("of the form NAME="));
  EXPECT_THAT(error_of([] { return parse_baseline("seed=1"); }), HasSubstr("has the seeds of"));
}

}  // namespace
}  // namespace rubato
