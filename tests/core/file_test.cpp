#include "base/core/file.hpp"

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <sys/resource.h>

#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

std::ptrdiff_t files_in(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

TEST(WriteFile, ReplacesTheWholeFile) {
  const test::TempFolder folder;
  const auto path = folder.path() / "file";
  write_file(path, "a longer text");
  write_file(path, "short");
  EXPECT_EQ(read_file(path), "short");
  EXPECT_EQ(files_in(folder.path()), 1);
}

TEST(WriteFile, TakesPiecesAndKeepsWhatWasThereWhereTheyEndInAnError) {
  const test::TempFolder folder;
  const auto path = folder.path() / "file";
  write_file(path, [](const ByteSink& sink) {
    sink("two ");
    sink("pieces");
  });
  EXPECT_EQ(read_file(path), "two pieces");
  EXPECT_EQ(error_of([&] {
              write_file(path, [](const ByteSink& sink) {
                sink("one piece");
                throw Error("and no more");
              });
            }),
            "and no more");
  EXPECT_EQ(read_file(path), "two pieces");
  EXPECT_EQ(files_in(folder.path()), 1);
}

TEST(WriteFile, KeepsWhatWasThereWhenTheDiskIsFull) {
  const test::TempFolder folder;
  const auto path = folder.path() / "file";
  write_file(path, "good");
  // No file may become longer than this: a full disk in small.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1000;
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string message = error_of([&] { write_file(path, std::string(5000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(message, path.string() + ": cannot write: File too large");
  EXPECT_EQ(read_file(path), "good");
  EXPECT_EQ(files_in(folder.path()), 1);
}

TEST(WriteFile, SaysWhereTheFolderIsGone) {
  const test::TempFolder folder;
  EXPECT_THROW(write_file(folder.path() / "gone" / "file", "text"), OutputError);
  EXPECT_THAT(error_of([&] { write_file(folder.path() / "gone" / "file", "text"); }),
              HasSubstr("gone/file: cannot write: No such file or directory"));
}

TEST(AbsolutePath, SaysThatTheWorkingFolderIsGone) {
  const std::filesystem::path before = std::filesystem::current_path();
  const test::TempFolder folder;
  const std::filesystem::path gone = folder.path() / "gone";
  std::filesystem::create_directory(gone);
  std::filesystem::current_path(gone);
  EXPECT_EQ(absolute_path("a/../b"), gone / "b");
  std::filesystem::remove(gone);
  EXPECT_EQ(error_of([] { return absolute_path("b"); }),
            "b: the working folder cannot be found: No such file or directory; accepted: an "
            "absolute path, or a start in an existing folder");
  EXPECT_EQ(absolute_path("/a/b"), "/a/b");
  std::filesystem::current_path(before);
}

TEST(ParentOf, IsWhereTheNameIs) {
  EXPECT_EQ(parent_of("a"), ".");
  EXPECT_EQ(parent_of("a/"), ".");
  EXPECT_EQ(parent_of("a/b//"), "a");
  EXPECT_EQ(parent_of("/a"), "/");
  EXPECT_EQ(parent_of("/"), "/");
}

TEST(PathsIn, AreInTheOrderOfTheirNames) {
  const test::TempFolder folder;
  for (const char* const name : {"b", "c", "a"}) write_file(folder.path() / name, "");
  EXPECT_THAT(paths_in(folder.path()),
              ElementsAre(folder.path() / "a", folder.path() / "b", folder.path() / "c"));
  EXPECT_THAT(paths_in(folder.path() / "none"), IsEmpty());
}

TEST(ReadFile, SaysWhatIsNoFile) {
  const test::TempFolder folder;
  EXPECT_THAT(error_of([&] { return read_file(folder.path() / "none"); }),
              HasSubstr("none: No such file"));
  EXPECT_THAT(error_of([&] { return read_file(folder.path()); }),
              HasSubstr("is not a regular file"));
}

// Another exception than Error, such as std::length_error, would be taken for a lack of memory.
TEST(ReadFile, SaysThatAFileHasGoneWhileItWasReadFrom) {
  const test::TempFolder folder;
  const auto path = folder.path() / "file";
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) {
      std::ofstream(path) << "text";
      std::filesystem::remove(path);
    }
  });
  for (int i = 0; i < 3000; ++i) {
    EXPECT_NO_THROW(static_cast<void>(error_of([&] { return read_file(path); })));
  }
  done = true;
  other.join();
}

}  // namespace
}  // namespace rubato
