#pragma once

// The commands in a page of the documentation.

#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace rubato::test {

/// The words of a command, as a shell has them. Quotes are around whole words.
inline std::vector<std::string> words_of(const std::string& command) {
  std::istringstream text(command);
  std::vector<std::string> words;
  for (std::string word; text >> word;) {
    if (word.front() == '\'') word = word.substr(1, word.size() - 2);
    words.push_back(word);
  }
  return words;
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

}  // namespace rubato::test
