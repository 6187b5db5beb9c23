// The chapter and the charts that a page has of an answer of `rubato whatif`.

#include "runs/page/whatif_chapter.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "base/core/file.hpp"
#include "runs/page/page.hpp"
#include "runs/page/run_charts.hpp"
#include "runs/whatif/whatif.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato::page {
namespace {

TrainingOutcome outcome(double accuracy, double loss, std::int64_t substeps) {
  return {.epochs = {{.steps = 10, .samples = 640, .loss = loss, .accuracy = accuracy}},
          .steps = 10,
          .samples = 640,
          .substeps = substeps};
}

RunEvent taken(std::int64_t steps) {
  return {.kind = RunEvent::Kind::taken,
          .steps = steps,
          .before = {.batch_size = 64, .cores = 4},
          .after = {.batch_size = 32, .cores = 2}};
}

WhatIfResult two_events() {
  WhatIfResult result{
      .events = {taken(3), taken(7)},
      .run = outcome(0.9, 0.5, 40),
      .has_test = true,
      .target = {.accuracy = 0.9},
      .counterfactuals = {{.events = {0}, .name = "without event 1", .steps = 3},
                          {.events = {1}, .name = "without event 2", .steps = 7},
                          {.events = {0, 1}, .name = "without all changes", .steps = 3}}};
  result.counterfactuals[0].outcome = outcome(0.95, 0.25, 40);
  result.counterfactuals[1].outcome = outcome(0.875, 0.5, 40);
  result.counterfactuals[1].outcome.end = RunEnd::diverged;
  result.counterfactuals[2].outcome = outcome(0.95, 0.25, 40);
  return result;
}

ThinnedRun read(const std::string& text) {
  const test::TempFolder temp;
  write_file(temp.path() / "whatif.json", text);
  ThinnedRun run("runs/first one", 10);
  read_whatif(temp.path() / "whatif.json", run);
  return run;
}

TEST(WhatIfChapter, ShowsEachEffect) {
  const ThinnedRun run = read(whatif_form().write(two_events()).dump());
  EXPECT_THAT(run.warnings, IsEmpty());
  const Json& section = run.whatif_section;
  EXPECT_EQ(section["title"], "What elasticity cost");
  // The substeps are the same, so that no figure shows them.
  ASSERT_EQ(section["figures"].size(), 2);
  const Json& accuracy = section["figures"][0];
  EXPECT_EQ(accuracy["title"], "What each event changed: accuracy");
  // A run that diverged has none.
  ASSERT_EQ(accuracy["rows"].size(), 2);
  EXPECT_EQ(accuracy["rows"][0]["label"], "step 4: cores 4 to 2, batch 64 to 32");
  EXPECT_EQ(accuracy["rows"][0]["text"], "-5.00");
  EXPECT_EQ(accuracy["rows"][1]["label"], "without all changes");
  EXPECT_EQ(section["figures"][1]["rows"][0]["text"], "+0.2500");
  EXPECT_THAT(run.whatif_chapter,
              AllOf(HasSubstr("without event 1: cores 4 to 2, batch 64 to 32"), HasSubstr("95.00"),
                    HasSubstr("test loss"), HasSubstr("diverged"), Not(HasSubstr("hours")),
                    HasSubstr("rubato whatif &#39;runs/first one&#39;")));
}

TEST(WhatIfChapter, ShowsTheEffectsOfOtherOrdersOfTheSamples) {
  WhatIfResult result = two_events();
  result.counterfactuals[0].others = {
      {.seed = 7, .outcome = outcome(0.91, 0.3, 40), .run = outcome(0.9, 0.3, 40)}};
  const ThinnedRun run = read(whatif_form().write(result).dump());
  const Json& row = run.whatif_section["figures"][0]["rows"][0];
  EXPECT_EQ(row["text"], "-3.00");
  EXPECT_EQ(row["points"].size(), 2);
}

TEST(WhatIfChapter, HasTheLargestOfManyEffects) {
  WhatIfResult result = two_events();
  result.counterfactuals.clear();
  const auto add = [&](double accuracy) {
    result.counterfactuals.push_back({.events = {0},
                                      .name = "without event 1",
                                      .steps = 3,
                                      .outcome = outcome(accuracy, 0.5, 40)});
  };
  for (int i = 0; i < 40; ++i) add(0.875);
  add(0.9);
  add(0.75);
  const ThinnedRun run = read(whatif_form().write(result).dump());
  const Json& figure = run.whatif_section["figures"][0];
  ASSERT_EQ(figure["rows"].size(), 30);
  EXPECT_EQ(figure["rows"].front()["text"], "+2.50");
  EXPECT_EQ(figure["rows"].back()["text"], "+15.00");
  EXPECT_THAT(figure["help"].get<std::string>(), HasSubstr("the 30 largest"));
}

TEST(WhatIfChapter, ShowsNoEffectThatIsNone) {
  WhatIfResult result = two_events();
  result.counterfactuals[0].outcome = result.run;
  const ThinnedRun run = read(whatif_form().write(result).dump());
  const Json& rows = run.whatif_section["figures"][0]["rows"];
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0]["label"], "without all changes");
}

TEST(WhatIfChapter, IsOnThePageOfItsRunAlone) {
  std::vector<ThinnedRun> runs{read(whatif_form().write(two_events()).dump())};
  EXPECT_EQ(charts_of(runs)["sections"].back()["title"], "What elasticity cost");
  EXPECT_THAT(document_of_runs(runs).end, HasSubstr("<h2>The run without its events</h2>"));
  runs.push_back(runs.front());
  EXPECT_THAT(charts_of(runs)["sections"], IsEmpty());
  EXPECT_THAT(document_of_runs(runs).end, Not(HasSubstr("without its events")));
}

TEST(WhatIfChapter, IsLeftOutWithAWarningIfItsFileIsDamaged) {
  for (const char* text : {"", "{", "[]", "{\"counterfactuals\": [{}]}"}) {
    const ThinnedRun run = read(text);
    EXPECT_THAT(run.warnings, ElementsAre(HasSubstr("cannot be read"))) << text;
    EXPECT_TRUE(run.whatif_section.is_null());
    EXPECT_EQ(run.whatif_chapter, "");
  }
}

}  // namespace
}  // namespace rubato::page
