#include "clients/app/line/output.hpp"

#include <cstdlib>
#include <optional>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "support/pseudo_terminal.hpp"

namespace rubato::app {
namespace {

// TERM for as long as it lives.
class Terminal {
 public:
  explicit Terminal(const char* name) {
    if (const char* before = std::getenv("TERM")) before_ = before;
    if (name == nullptr) {
      unsetenv("TERM");
    } else {
      setenv("TERM", name, 1);
    }
  }
  ~Terminal() {
    if (before_) {
      setenv("TERM", before_->c_str(), 1);
    } else {
      unsetenv("TERM");
    }
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

 private:
  std::optional<std::string> before_;
};

TEST(Output, HasNoControlCharactersOfAFile) {
  EXPECT_EQ(printable("a\x1b[2Jb\ac\rd\n\te\x7f"), "a?[2Jb?c?d\n?e?");
  EXPECT_EQ(printable("caf\xC3\xA9 \xC2\x9B"
                      "2J \xC2\xA0 \xC2"),
            "caf\xC3\xA9 ?2J \xC2\xA0 \xC2");
}

TEST(Output, IsDrawnOverOnlyWhereTheTerminalUnderstandsIt) {
  const test::PseudoTerminal pseudo_terminal;
  const int on_terminal = pseudo_terminal.program();
  const auto redraws = [](int descriptor, const char* name) {
    const Terminal terminal(name);
    return can_redraw(descriptor);
  };
  EXPECT_TRUE(redraws(on_terminal, "xterm-256color"));
  EXPECT_FALSE(redraws(on_terminal, "dumb"));
  EXPECT_FALSE(redraws(on_terminal, ""));
  EXPECT_FALSE(redraws(on_terminal, nullptr));
  const int file = open("/dev/null", O_WRONLY);
  EXPECT_FALSE(redraws(file, "xterm-256color"));
  close(file);
}

}  // namespace
}  // namespace rubato::app
