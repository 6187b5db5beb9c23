// In which order write_file() reaches the disk. fsync and rename are wrapped when the tests are
// linked
// (-Wl,--wrap), so that every call of the library is seen here.

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <gmock/gmock.h>
#include <unistd.h>

#include "core/file.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::error_of;
using testing::ElementsAre;

// What the wrapped calls were, and which of them is to fail.
struct Calls {
  std::vector<std::string> log;
  std::string failing;
  std::filesystem::path folder;

  [[nodiscard]] std::string shown(const std::filesystem::path& path) const {
    return path == folder ? "." : path.lexically_relative(folder).string();
  }
  // 0, or -1 with errno as of a disk that is broken.
  [[nodiscard]] int note(std::string call) {
    log.push_back(std::move(call));
    if (log.back() != failing) return 0;
    errno = EIO;
    return -1;
  }
};
Calls* g_calls = nullptr;

std::string file_of(int descriptor) {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), ignored);
}

}  // namespace
}  // namespace rubato

// The linker's names, by which --wrap finds them, stand in the labels: in C++ they are reserved.
extern "C" {
int real_fsync(int descriptor) __asm__("__real_fsync");
int real_rename(const char* from, const char* to) __asm__("__real_rename");
int wrapped_fsync(int descriptor) __asm__("__wrap_fsync");
int wrapped_rename(const char* from, const char* to) __asm__("__wrap_rename");

int wrapped_fsync(int descriptor) {
  using rubato::g_calls;
  if (g_calls != nullptr && g_calls->note("fsync " + g_calls->shown(rubato::file_of(descriptor)))) {
    return -1;
  }
  return real_fsync(descriptor);
}

int wrapped_rename(const char* from, const char* to) {
  using rubato::g_calls;
  if (g_calls != nullptr &&
      g_calls->note("rename " + g_calls->shown(from) + " " + g_calls->shown(to))) {
    return -1;
  }
  return real_rename(from, to);
}
}

namespace rubato {
namespace {

class FileOrder : public testing::Test {
 protected:
  FileOrder() {
    // As the kernel names it.
    calls_.folder = std::filesystem::canonical(folder_.path());
    g_calls = &calls_;
  }
  ~FileOrder() override { g_calls = nullptr; }
  FileOrder(const FileOrder&) = delete;
  FileOrder& operator=(const FileOrder&) = delete;

  [[nodiscard]] std::filesystem::path path(std::string_view name) const {
    return calls_.folder / name;
  }
  [[nodiscard]] std::string error_where(const std::string& call) {
    calls_.failing = call;
    std::string message = error_of([&] { write_file(path("x"), "new"); });
    EXPECT_EQ(calls_.log.back(), call) << "nothing follows what has failed";
    return message;
  }

  test::TempFolder folder_;
  Calls calls_;
};

// What is renamed before it is on the disk is an empty file after a power failure, and a name that
// is not on the disk is no file at all.
TEST_F(FileOrder, IsTheFileThenItsNameThenItsFolder) {
  write_file(path("x"), "text");
  EXPECT_THAT(calls_.log, ElementsAre("fsync x.part", "rename x.part x", "fsync ."));
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
  EXPECT_EQ(error_where("fsync ."), calls_.folder.string() + ": cannot write: Input/output error");
}

TEST_F(FileOrder, FlushesFilesAndFoldersByName) {
  write_file(path("x"), "text");
  calls_.log.clear();
  flush_to_disk(path("x"));
  flush_to_disk(calls_.folder);
  EXPECT_THAT(calls_.log, ElementsAre("fsync x", "fsync ."));
}

// Somebody was killed while he wrote a longer one.
TEST_F(FileOrder, LeavesNothingOfAnOlderAttempt) {
  folder_.write("x.part", "a much longer text of an older attempt");
  write_file(path("x"), "short");
  EXPECT_EQ(read_file(path("x")), "short");
}

}  // namespace
}  // namespace rubato
