// `rubato metrics` as docs/records.md shows them.

#include <algorithm>
#include <string>

#include <gmock/gmock.h>

#include "app/doc_commands.hpp"
#include "app/run_program.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::ProgramResult;
using test::TempFolder;

TEST(RecordsPage, HasCommandsThatRunAndMetricsThatAreThere) {
  const std::string page = test::read_file(RUBATO_RECORDS_MD);
  const TempFolder folder;
  const auto commands = test::rubato_commands(page);
  ASSERT_EQ(commands.size(), 3U);
  std::string steps;
  for (const std::string& command : commands) {
    const ProgramResult result = test::rubato(command, folder.path());
    EXPECT_EQ(result.code, 0) << command << "\n" << result.err;
    EXPECT_EQ(result.err, "") << command;
    if (steps.empty() && command.starts_with("metrics")) steps = result.out;
  }
  EXPECT_THAT(steps, StartsWith("step,epoch,batch,cores,"));
  EXPECT_GT(std::ranges::count(steps, '\n'), 81) << "a header, and a row for each step";
}

TEST(MetricsCommand, SaysWhatIsWrong) {
  const TempFolder folder;
  folder.write("run/metrics.jsonl", "{}\n");
  const auto error = [&](const test::Words& arguments) {
    const ProgramResult result = test::rubato(arguments, folder.path());
    EXPECT_EQ(result.code, 2);
    return result.err;
  };
  EXPECT_EQ(error("metrics"),
            "rubato metrics: no RUN is given; accepted: rubato metrics RUN [OPTIONS]\n");
  EXPECT_EQ(error("metrics a b"), "rubato metrics: 'a' and 'b'; accepted: one RUN\n");
  EXPECT_THAT(error("metrics none"), HasSubstr("none/metrics.jsonl: cannot be read"));
  EXPECT_THAT(error("metrics run"), HasSubstr("run/metrics.jsonl:1: is not a line of metrics"));
  EXPECT_THAT(error("metrics run --kind epohc"),
              HasSubstr("--kind: unknown kind of line 'epohc'; did you mean 'epoch'?"));
}

}  // namespace
}  // namespace rubato
