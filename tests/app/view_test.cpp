// The view of a training on a terminal: there while it trains, gone when it has ended.

#include <csignal>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "app/on_terminal.hpp"
#include "app/run_program.hpp"
#include "base/core/text/text.hpp"
#include "support/matchers.hpp"
#include "support/screen.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

// Returns a command that trains; the last of several options counts.
std::string training(const std::string& out, const std::string& more = "") {
  return "train --model softmax --epochs 2 --out " + out + " " + more;
}

// So that it does not end by itself.
std::string long_training(const std::string& out) {
  return training(out, "--epochs 100000");
}

std::vector<std::string> shown(const std::string& text, std::size_t columns) {
  test::Screen screen(columns);
  screen.send(text);
  EXPECT_TRUE(screen.at_line_begin());
  EXPECT_TRUE(screen.shows_cursor());
  return screen.rows();
}

// Times are others in each run, and a terminal has no empty line behind the last one.
std::vector<std::string> without_times(std::vector<std::string> lines) {
  static const std::regex times(" in [0-9]+:[0-9:]+ |[0-9.]+[kM]? samples/s|(run folder ).*");
  for (std::string& line : lines) line = std::regex_replace(line, times, "$1");
  return lines;
}

bool has_view(const std::string& text) {
  return text.find("\x1b[?2026h") != std::string::npos;
}

TEST(View, GivesWayToTheLinesOfAPipe) {
  const test::TempFolder folder;
  const std::string text = test::on_terminal(120, training("a"), folder.path());
  EXPECT_TRUE(has_view(text));
  EXPECT_THAT(text, AnyOf(HasSubstr("left"), HasSubstr("loss")));
  const test::ProgramResult piped =
      test::rubato(training((folder.path() / "b").string(), "--log-steps 0"));
  EXPECT_FALSE(has_view(piped.out));
  test::Screen screen(400);
  screen.send(piped.out);
  EXPECT_EQ(without_times(shown(text, 120)), without_times(screen.rows()));
}

TEST(View, IsOnlyWhereItIsWanted) {
  const test::TempFolder folder;
  const auto text_of = [&](const char* out, const char* more,
                           const test::TerminalProgram::Variables& variables) {
    return test::on_terminal(120, training(out, more), folder.path(), variables);
  };
  EXPECT_THAT(text_of("dumb", "", {{"TERM", "dumb"}}), Not(HasSubstr("\x1b")));
  const std::string plain = text_of("plain", "", {{"NO_COLOR", "1"}});
  EXPECT_FALSE(has_view(plain));
  EXPECT_THAT(plain, HasSubstr("\r\x1b[2Kepoch 1/2")) << "a line that is drawn over";
  EXPECT_TRUE(has_view(text_of("empty", "", {{"NO_COLOR", ""}})));
  EXPECT_EQ(text_of("quiet", "--quiet", {}), "");
  const std::string verbose = text_of("verbose", "--verbose", {});
  EXPECT_THAT(verbose, Not(HasSubstr("\x1b")));
  EXPECT_THAT(verbose, HasSubstr(" %, waiting "));
  EXPECT_THAT(verbose, HasSubstr("weights have SHA-256 "));
}

TEST(View, FollowsTheWidthOfTheTerminal) {
  const test::TempFolder folder;
  test::TerminalProgram program(80, long_training("run"), folder.path());
  ASSERT_TRUE(program.read_until("\x1b[?2026l"));
  program.resize(50);
  const std::size_t before = program.text().size();
  // Of the drawings that began after that, the second.
  ASSERT_TRUE(program.read_until([&](std::string_view text) {
    const std::size_t first = text.find("\x1b[?2026h", before);
    const std::size_t second = first == text.npos ? first : text.find("\x1b[?2026h", first + 1);
    return second != text.npos && text.find("\x1b[?2026l", second) != text.npos;
  }));
  const std::string& text = program.text();
  const std::size_t last = text.rfind("\x1b[?2026h", text.rfind("\x1b[?2026l"));
  test::Screen screen(200);
  screen.send(std::string_view(text).substr(last));
  for (const std::string& row : screen.rows()) EXPECT_LT(width_of(row), 50U) << row;
  EXPECT_THAT(screen.rows(), Contains(HasSubstr("batch")));
  kill(program.process(), SIGKILL);
  EXPECT_EQ(program.finish(), -SIGKILL);
}

// Ctrl-C: the message is whole, and what is below it, too.
TEST(View, LeavesTheTerminalWholeAfterASignal) {
  const test::TempFolder folder;
  test::TerminalProgram program(120, long_training("run"), folder.path());
  ASSERT_TRUE(program.read_until("samples/s"));
  program.type("\x03");
  EXPECT_EQ(program.finish(), 130);
  const std::vector<std::string> rows = shown(program.text(), 120);
  EXPECT_THAT(rows,
              Contains("rubato train: finishing the step, and saving the state; repeat after a "
                       "second to end at once"));
  EXPECT_THAT(rows, Contains(HasSubstr("stopped by a signal after ")));
  EXPECT_THAT(rows, Contains("to continue: rubato train --resume run"));
  EXPECT_EQ(rows.back(), "");
}

// Nothing that the program could do: it is killed in the middle of it.
TEST(View, LeavesTheTerminalWholeWhenItIsKilled) {
  const test::TempFolder folder;
  test::TerminalProgram program(120, long_training("run"), folder.path());
  ASSERT_TRUE(program.read_until("samples/s"));
  kill(program.process(), SIGKILL);
  EXPECT_EQ(program.finish(), -SIGKILL);
  static_cast<void>(shown(program.text(), 120));
}

TEST(View, LeavesTheTerminalWholeAfterAnError) {
  const test::TempFolder folder;
  test::TerminalProgram program(120, training("run", "--model mlp --lr 1e30"), folder.path());
  EXPECT_EQ(program.finish(), 22);
  EXPECT_THAT(shown(program.text(), 120), Contains("metrics are kept in run"));
}

}  // namespace
}  // namespace rubato
