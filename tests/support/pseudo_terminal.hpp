#pragma once

#include <utility>

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

namespace rubato::test {

/// A terminal that nobody sits at.
class PseudoTerminal {
 public:
  /// Of so many columns and rows; 0: it does not say.
  explicit PseudoTerminal(unsigned short columns = 0, unsigned short rows = 24) {
    winsize size{};
    size.ws_row = rows;
    size.ws_col = columns;
    EXPECT_EQ(openpty(&user_, &program_, nullptr, nullptr, &size), 0);
  }
  ~PseudoTerminal() {
    if (program_ >= 0) close(program_);
    if (user_ >= 0) close(user_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  /// What a program writes to, and what it has written is read from.
  [[nodiscard]] int program() const { return program_; }
  [[nodiscard]] int user() const { return user_; }
  /// program(), which the caller closes.
  [[nodiscard]] int release_program() { return std::exchange(program_, -1); }

 private:
  int user_ = -1;
  int program_ = -1;
};

}  // namespace rubato::test
