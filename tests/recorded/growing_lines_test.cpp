#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/error.hpp>

#include "runs/report/metrics_file.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

class GrowingLinesTest : public testing::Test {
 protected:
  void append(std::string_view text) const { std::ofstream(file_, std::ios::app) << text; }
  // What read() does, with "anew" where it begins anew.
  std::vector<std::string> read() {
    std::vector<std::string> all;
    lines_.read([&] { all.emplace_back("anew"); },
                [&](std::string_view line) { all.emplace_back(line); });
    return all;
  }

  test::TempFolder folder_;
  fs::path file_ = folder_.path() / "metrics.jsonl";
  GrowingLines lines_{file_};
};

TEST_F(GrowingLinesTest, ComeAsTheyAreWritten) {
  EXPECT_THAT(read(), ElementsAre()) << "there is no file yet";
  append("one\ntw");
  EXPECT_THAT(read(), ElementsAre("one"));
  EXPECT_THAT(read(), ElementsAre());
  append("o\n\nfour\n");
  EXPECT_THAT(read(), ElementsAre("two", "", "four"));
  EXPECT_EQ(lines_.line(), 4);
}

TEST_F(GrowingLinesTest, ComeAnewWhereTheFileWasCut) {
  append("one\ntwo\nthree\n");
  EXPECT_EQ(read().size(), 3U);
  fs::resize_file(file_, 4);
  EXPECT_THAT(read(), ElementsAre("anew", "one"));
  append("2\n");
  EXPECT_THAT(read(), ElementsAre("2"));
}

// Between two looks a run may be cut off and get further than it was.
TEST_F(GrowingLinesTest, ComeAnewWhereTheFileWasCutAndHasGrownSince) {
  append("one\ntwo\n");
  EXPECT_EQ(read().size(), 2U);
  fs::resize_file(file_, 4);
  append("another\nline\n");
  EXPECT_THAT(read(), ElementsAre("anew", "one", "another", "line"));
}

TEST_F(GrowingLinesTest, ComeAnewWhereTheFileHasGone) {
  append("one\n");
  EXPECT_EQ(read().size(), 1U);
  fs::remove(file_);
  EXPECT_THAT(read(), ElementsAre("anew"));
  EXPECT_THAT(read(), ElementsAre());
  append("first\n");
  EXPECT_THAT(read(), ElementsAre("first"));
}

// Longer than what is read at once, and than what a file is known by.
TEST_F(GrowingLinesTest, MayBeLong) {
  const std::string longer((1 << 20) + 17, 'x');
  append(longer + "\n" + longer + "y\nrest");
  EXPECT_THAT(read(), ElementsAre(longer, longer + "y"));
  append("\n");
  EXPECT_THAT(read(), ElementsAre("rest"));
  append("more\n");
  EXPECT_THAT(read(), ElementsAre("more"));
}

TEST_F(GrowingLinesTest, AreNotThoseOfAFolderOrADevice) {
  fs::create_directory(file_);
  EXPECT_THROW(read(), Error);
  fs::remove(file_);
  // It has no end.
  fs::create_symlink("/dev/zero", file_);
  EXPECT_THROW(read(), Error);
}

}  // namespace
}  // namespace rubato
