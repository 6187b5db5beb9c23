#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "config/other_value.hpp"
#include "runs/config/configuration_file.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::with_other_value;

std::string refused(const RunConfiguration& before, const RunConfiguration& now, ResumeFrom from) {
  return error_of([&] { require_resumable(before, now, from); });
}

// Of each option: whether a run may go on with another value. What decides bits may not.
TEST(Resume, BindsARunToEachOptionThatDecidesItsResult) {
  const std::set<std::string> free{
      "epochs",       "threads",          "cores",  "assignment",      "reduce", "exact",
      "on-trace-end", "checkpoint-every", "keep",   "fault",           "faults", "straggler",
      "log-steps",    "log-minibatches",  "top-k",  "target-accuracy", "price",  "tensorboard",
      "histograms",   "histograms-every", "metric", "timeline"};
  const std::set<std::string> by_content{"availability", "data", "trace"};
  const RunConfiguration before;
  std::set<std::string> found;
  for (const RunOption& option : run_options()) {
    SCOPED_TRACE(option.name);
    const RunConfiguration now = with_other_value(option);
    const auto with_state = refused(before, now, ResumeFrom::checkpoint);
    const auto without_state = refused(before, now, ResumeFrom::configuration);
    if (free.contains(option.name)) {
      found.insert(option.name);
      EXPECT_EQ(with_state, "no error");
      EXPECT_EQ(without_state, "no error");
      continue;
    }
    const std::string difference = fmt::format(
        "the run was trained with other options: --{} was {}, is {}\nmay be changed: ", option.name,
        option.text(before).value_or("not set"), option.text(now).value_or("not set"));
    EXPECT_THAT(without_state, StartsWith(difference));
    if (by_content.contains(option.name)) {
      EXPECT_EQ(with_state, "no error");
    } else {
      EXPECT_THAT(with_state, StartsWith(difference));
    }
    // And back again.
    EXPECT_THAT(refused(now, before, ResumeFrom::configuration),
                HasSubstr(fmt::format("--{} was ", option.name)));
  }
  EXPECT_EQ(found, free);
}

TEST(Resume, NamesAllThatDiffersAndAllThatMayBeChanged) {
  RunConfiguration before;
  before.clip_norm = 2.5;
  before.trace = "a.csv";
  RunConfiguration now;
  now.learning_rate = 0.5;
  now.trace = "b.csv";
  now.threads = before.threads + 1;
  EXPECT_THAT(refused(before, now, ResumeFrom::checkpoint),
              StartsWith("the run was trained with other options: --lr was 0.01, is 0.5, "
                         "--clip-norm was 2.5, is not set\nmay be changed: --on-trace-end, "
                         "--cores, "));
  const std::string names = refused(before, now, ResumeFrom::configuration);
  EXPECT_THAT(names, HasSubstr("--trace was a.csv, is b.csv, --lr was 0.01, is 0.5, "));
  EXPECT_THAT(names, Not(HasSubstr("rows of the trace")));
  EXPECT_THAT(refused(before, now, ResumeFrom::checkpoint),
              EndsWith(", and rows of the trace that no step has used"));
}

}  // namespace
}  // namespace rubato
