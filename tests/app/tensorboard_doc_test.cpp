// docs/tensorboard.md: its commands run, one after the other, and with docs/records.md it has every
// curve that they write.

#include <filesystem>
#include <string>

#include <gmock/gmock.h>

#include "app/doc_commands.hpp"
#include "app/run_program.hpp"
#include "support/temp_folder.hpp"
#include "tensorboard/event_reader.hpp"

namespace rubato {
namespace {

TEST(TensorBoardDoc, HasCommandsThatRunAndEveryCurve) {
  const std::string text = test::read_file(RUBATO_TENSORBOARD_MD);
  const test::TempFolder folder;
  const auto commands = test::rubato_commands(text);
  EXPECT_EQ(commands.size(), 3U);
  for (const std::string& command : commands) {
    const test::ProgramResult result = test::rubato(test::words_of(command), folder.path());
    EXPECT_EQ(result.code, 0) << command << "\n" << result.err;
    EXPECT_EQ(result.err, "") << command;
  }

  const auto events = test::read_folder(folder.path() / "runs/linear");
  const auto curves = test::curves_of(events);
  EXPECT_GT(curves.size(), 15U);
  const std::string tags = text + test::read_file(RUBATO_RECORDS_MD);
  for (const auto& [tag, points] : curves) {
    EXPECT_THAT(tags, testing::HasSubstr("`" + tag + "`"));
  }
  std::size_t histograms = 0;
  for (const auto& event : events) histograms += event.histograms.size();
  EXPECT_GT(histograms, 0U);
  EXPECT_EQ(test::event_files(folder.path() / "rules/runs").size(), 1U);
}

}  // namespace
}  // namespace rubato
