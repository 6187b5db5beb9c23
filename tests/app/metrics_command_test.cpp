// `rubato metrics` and --openmetrics, as docs/records.md shows them.

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>

#include <gmock/gmock.h>
#include <sys/types.h>

#include "app/doc_commands.hpp"
#include "app/run_program.hpp"
#include "support/open_metrics.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::OpenMetricsText;
using test::ProgramResult;
using test::TempFolder;
using testing::HasSubstr;
using testing::StartsWith;

TEST(RecordsPage, HasCommandsThatRunAndMetricsThatAreThere) {
  const std::string page = test::read_file(RUBATO_RECORDS_MD);
  const TempFolder folder;
  const auto commands = test::rubato_commands(page);
  ASSERT_EQ(commands.size(), 3U);
  std::string steps;
  for (const std::string& command : commands) {
    const ProgramResult result = test::rubato(test::words_of(command), folder.path());
    EXPECT_EQ(result.code, 0) << command << "\n" << result.err;
    EXPECT_EQ(result.err, "") << command;
    if (steps.empty() && command.starts_with("metrics")) steps = result.out;
  }
  EXPECT_THAT(steps, StartsWith("step,epoch,batch,cores,"));
  const OpenMetricsText metrics(test::read_file(folder.path() / "softmax.prom"));
  EXPECT_EQ(metrics.violation(), "");
  EXPECT_EQ(metrics.value("rubato_running"), 0);
  EXPECT_GT(metrics.value("rubato_result_steps"), 80);
  // A header, and a row for each step.
  EXPECT_EQ(std::ranges::count(steps, '\n'), metrics.value("rubato_result_steps") + 1);
  EXPECT_EQ(metrics.samples().begin()->second.labels.at("run"), "softmax");
  const std::regex name("`(rubato_[a-z_]+[a-z])`");
  int named = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), name), end; it != end; ++it, ++named) {
    EXPECT_TRUE(metrics.contains((*it)[1])) << (*it)[1];
  }
  EXPECT_EQ(named, 5);
}

TEST(MetricsCommand, SaysWhatIsWrong) {
  const TempFolder folder;
  folder.write("run/metrics.jsonl", "{}\n");
  const auto error = [&](const std::vector<std::string>& arguments) {
    const ProgramResult result = test::rubato(arguments, folder.path());
    EXPECT_EQ(result.code, 2);
    return result.err;
  };
  EXPECT_EQ(error({"metrics"}),
            "rubato metrics: no RUN is given; accepted: rubato metrics RUN [OPTIONS]\n");
  EXPECT_EQ(error({"metrics", "a", "b"}), "rubato metrics: 'a' and 'b'; accepted: one RUN\n");
  EXPECT_THAT(error({"metrics", "none"}), HasSubstr("none/metrics.jsonl: cannot be read"));
  EXPECT_THAT(error({"metrics", "run"}),
              HasSubstr("run/metrics.jsonl:1: is not a line of metrics"));
  EXPECT_THAT(error({"metrics", "run", "--kind", "epohc"}),
              HasSubstr("--kind: unknown kind of line 'epohc'; did you mean 'epoch'?"));
}

TEST(OpenMetricsOption, IsRefusedWhereItCannotBeWritten) {
  const TempFolder folder;
  const ProgramResult lost =
      test::rubato({"train", "--model", "softmax", "--epochs", "1", "--openmetrics", "none/x.prom"},
                   folder.path());
  EXPECT_EQ(lost.code, 24);
  EXPECT_THAT(lost.err, HasSubstr("none/x.prom: cannot write: No such file or directory"));
  const ProgramResult shared =
      test::rubato({"compare", "--model", "softmax", "--openmetrics", "x.prom"}, folder.path());
  EXPECT_EQ(shared.code, 2);
  EXPECT_EQ(shared.err,
            "rubato compare: --openmetrics: all runs would write it; accepted: for rubato train\n");
  EXPECT_EQ(test::rubato({"compare", "--model", "softmax", "--baseline", "openmetrics=x.prom"},
                         folder.path())
                .code,
            2);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "experiments"));
}

// A path in a configuration file is relative to it, as all paths there are.
TEST(OpenMetricsOption, MayComeFromAConfigurationFile) {
  const TempFolder folder;
  folder.write("sub/run.toml", "model = \"softmax\"\nepochs = 1\nopenmetrics = \"run.prom\"\n");
  const ProgramResult result =
      test::rubato({"train", "--config", "sub/run.toml", "--out", "run", "--quiet"}, folder.path());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "sub/run.prom"));
}

}  // namespace
}  // namespace rubato
