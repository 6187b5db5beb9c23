// In which order write_file() reaches the disk.

#include <filesystem>
#include <string>
#include <string_view>

#include <gmock/gmock.h>

#include "base/core/file.hpp"
#include "support/error_of.hpp"
#include "support/file_calls.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

class FileOrder : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path path(std::string_view name) const {
    return calls_.folder() / name;
  }
  [[nodiscard]] std::string error_where(const std::string& call) {
    calls_.fail(call);
    std::string message = error_of([&] { write_file(path("x"), "new"); });
    EXPECT_EQ(calls_.log().back(), call) << "nothing follows what has failed";
    return message;
  }

  test::TempFolder folder_;
  test::FileCalls calls_{folder_.path()};
};

// What is renamed before it is on the disk is an empty file after a power failure, and a name that
// is not on the disk is no file at all.
TEST_F(FileOrder, IsTheFileThenItsNameThenItsFolder) {
  write_file(path("x"), "text");
  EXPECT_THAT(calls_.log(), ElementsAre("fsync x.part", "rename x.part x", "fsync ."));
}

TEST_F(FileOrder, OfADiskThatFailsKeepsWhatWasThere) {
  write_file(path("x"), "old");
  const std::string message = path("x").string() + ": cannot write: Input/output error";
  for (const auto* call : {"fsync x.part", "rename x.part x"}) {
    EXPECT_EQ(error_where(call), message);
    EXPECT_EQ(read_file(path("x")), "old") << call;
    EXPECT_FALSE(std::filesystem::exists(path("x.part"))) << call;
  }
}

TEST_F(FileOrder, OfAFolderThatCannotBeFlushedIsAnError) {
  EXPECT_EQ(error_where("fsync ."),
            calls_.folder().string() + ": cannot write: Input/output error");
}

TEST_F(FileOrder, FlushesFilesAndFoldersByName) {
  write_file(path("x"), "text");
  calls_.clear();
  flush_to_disk(path("x"));
  flush_to_disk(calls_.folder());
  EXPECT_THAT(calls_.log(), ElementsAre("fsync x", "fsync ."));
}

// Somebody was killed while he wrote a longer one.
TEST_F(FileOrder, LeavesNothingOfAnOlderAttempt) {
  folder_.write("x.part", "a much longer text of an older attempt");
  write_file(path("x"), "short");
  EXPECT_EQ(read_file(path("x")), "short");
}

}  // namespace
}  // namespace rubato
