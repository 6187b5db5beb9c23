#pragma once

// The commands in a page of the documentation.

#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "app/run_program.hpp"
#include "support/temp_folder.hpp"

namespace rubato::test {

/// The words of a command, as a shell has them.
inline std::vector<std::string> words_of(const std::string& command) {
  return Words(command).all();
}

/// The commands behind "$ rubato " at the beginning of a line; one that ends with a backslash goes
/// on in the next line.
inline std::vector<std::string> rubato_commands(const std::string& text) {
  const std::regex command("\n\\$ rubato ((?:[^\n]*\\\\\n)*[^\n]+)");
  const std::regex continuation("\\\\\n *");
  std::vector<std::string> commands;
  for (std::sregex_iterator it(text.begin(), text.end(), command), end; it != end; ++it) {
    commands.push_back(std::regex_replace((*it)[1].str(), continuation, ""));
  }
  return commands;
}

/// Runs a command in `folder`, which must succeed without a warning, and returns what it prints.
inline std::string run_command(const std::string& command, const TempFolder& folder) {
  const bool has_quotes = command.find('\'') != std::string::npos;
  const ProgramResult result =
      has_quotes ? shell("\"$0\" " + command, folder.path()) : rubato(command, folder.path());
  // Differences are the result of `rubato diff`, and not a failure.
  const int differs = command.starts_with("diff") ? 1 : 0;
  EXPECT_TRUE(result.code == 0 || result.code == differs) << command << "\n" << result.err;
  // The calibration says there how exact it is, and whoever reads a file of zones which of its
  // columns count.
  const std::regex columns("[^\n]*: (the devices are those of|the zones are) [^\n]*\n");
  if (!command.starts_with("calibrate")) {
    EXPECT_EQ(std::regex_replace(result.err, columns, ""), "") << command;
  }
  return result.out;
}

/// Runs the commands of a page in `folder`, where the files that it shows as "`NAME`:" or makes
/// with "$ { COMMANDS } > NAME" are written first, and returns what they print.
inline std::string run_commands_of(const std::string& page, const TempFolder& folder) {
  const std::regex file("`([a-z]+\\.[a-z]+)`:\n```[a-z]*\n([^`]*)```");
  for (std::sregex_iterator it(page.begin(), page.end(), file), end; it != end; ++it) {
    folder.write((*it)[1].str(), (*it)[2].str());
  }
  const std::regex made("\n\\$ (\\{ [^\n]*\\} > [^\n]*)");
  for (std::sregex_iterator it(page.begin(), page.end(), made), end; it != end; ++it) {
    EXPECT_EQ(shell((*it)[1].str(), folder.path()).code, 0);
  }
  const std::vector<std::string> commands = rubato_commands(page);
  EXPECT_FALSE(commands.empty());
  std::string out;
  for (const std::string& command : commands) out += run_command(command, folder);
  return out;
}

}  // namespace rubato::test
