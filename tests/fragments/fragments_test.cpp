#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace rubato {

namespace {

namespace fs = std::filesystem;

const fs::path kSource = RUBATO_SOURCE_DIR;

// Without comments and space: what the compiler sees, wherever lines are broken.
std::string squeezed(std::string_view code) {
  std::istringstream in{std::string(code)};
  std::string text;
  for (std::string line; std::getline(in, line);) {
    line.erase(std::min(line.find("// "), line.size()));
    for (const char c : line) {
      if (c != ' ') text += c;
    }
  }
  return text;
}

// A fragment of code, and where it stands.
struct Fragment {
  std::string place;
  std::string code;
};

// Takes consecutive lines that belong to a fragment.
class Collector {
 public:
  Collector(const fs::path& file, std::vector<Fragment>& into) : file_(file), into_(into) {}
  void take(std::int64_t number, const std::string& line) {
    if (code_.empty()) begin_ = number;
    code_ += line + '\n';
  }
  void end() {
    if (!code_.empty()) {
      into_.push_back(
          {fs::relative(file_, kSource).string() + ':' + std::to_string(begin_), code_});
    }
    code_.clear();
  }

 private:
  fs::path file_;
  std::vector<Fragment>& into_;
  std::int64_t begin_ = 0;
  std::string code_;
};

// Blocks of a documentation comment that are indented and name something of the library: formulas
// and listings do not.
std::vector<Fragment> of_header(const fs::path& file) {
  static const std::regex indented("^ *///     +(.*)$");
  std::vector<Fragment> blocks;
  Collector collector(file, blocks);
  std::ifstream in(file);
  std::int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::smatch match;
    if (std::regex_match(line, match, indented)) {
      collector.take(number, match[1]);
    } else {
      collector.end();
    }
  }
  std::erase_if(blocks, [](const Fragment& block) {
    return block.code.find("rubato::") == std::string::npos &&
           block.code.find("torch::") == std::string::npos;
  });
  return blocks;
}

std::vector<Fragment> of_markdown(const fs::path& file) {
  std::vector<Fragment> blocks;
  Collector collector(file, blocks);
  std::ifstream in(file);
  bool inside = false;
  std::int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("```")) {
      collector.end();
      inside = line == "```cpp";
    } else if (inside) {
      collector.take(number, line);
    }
  }
  return blocks;
}

std::vector<Fragment> all_fragments() {
  std::vector<Fragment> all;
  const auto add = [&](const std::vector<Fragment>& some) {
    all.insert(all.end(), some.begin(), some.end());
  };
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "include")) {
    if (entry.path().extension() == ".hpp") add(of_header(entry.path()));
  }
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "docs")) {
    if (entry.path().extension() == ".md") add(of_markdown(entry.path()));
  }
  add(of_markdown(kSource / "README.md"));
  return all;
}

std::string read(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// All code that is compiled, and where it does something run, as users would write it.
std::string compiled_code() {
  std::string code = squeezed(read(kSource / "tests/train/plug_points.hpp"));
  for (const auto* const folder : {"tests/fragments", "examples", "examples/plugin"}) {
    for (const auto& entry : fs::directory_iterator(kSource / folder)) {
      if (entry.path().extension() == ".cpp") code += squeezed(read(entry.path()));
    }
  }
  return code;
}

TEST(Fragments, OfHeadersAndDocumentsAreCompiled) {
  const std::vector<Fragment> fragments = all_fragments();
  // Those that there were when this was written; fewer would mean that they are not found.
  ASSERT_GE(fragments.size(), 22);
  const std::string compiled = compiled_code();
  for (const Fragment& fragment : fragments) {
    EXPECT_NE(compiled.find(squeezed(fragment.code)), std::string::npos)
        << fragment.place
        << " is not in tests/fragments, tests/train/plug_points.hpp or examples:\n"
        << fragment.code;
  }
}

}  // namespace

}  // namespace rubato
