#include "support/file_calls.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <unistd.h>

namespace rubato::test {
namespace {

FileCalls* g_calls = nullptr;

}  // namespace

FileCalls::FileCalls(const std::filesystem::path& folder)
    : folder_(std::filesystem::canonical(folder)) {
  if (g_calls != nullptr) std::abort();
  g_calls = this;
}

FileCalls::~FileCalls() {
  g_calls = nullptr;
}

std::string FileCalls::shown(const std::filesystem::path& path) const {
  return path.lexically_relative(folder_).string();
}

int FileCalls::note(std::string call) {
  if (exit_at_ == log_.size()) _exit(9);
  log_.push_back(std::move(call));
  if (log_.back() != failing_) return 0;
  errno = EIO;
  return -1;
}

int FileCalls::note_fsync(int descriptor) {
  std::error_code ignored;
  const std::filesystem::path file =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), ignored);
  return note("fsync " + shown(file));
}

int FileCalls::note_rename(const char* from, const char* to) {
  return note("rename " + shown(from) + " " + shown(to));
}

}  // namespace rubato::test

// The linker's names, by which --wrap finds them, stand in the labels: in C++ they are reserved.
extern "C" {
int real_fsync(int descriptor) __asm__("__real_fsync");
int real_rename(const char* from, const char* to) __asm__("__real_rename");
int wrapped_fsync(int descriptor) __asm__("__wrap_fsync");
int wrapped_rename(const char* from, const char* to) __asm__("__wrap_rename");

int wrapped_fsync(int descriptor) {
  using rubato::test::g_calls;
  if (g_calls != nullptr && g_calls->note_fsync(descriptor) != 0) return -1;
  return real_fsync(descriptor);
}

int wrapped_rename(const char* from, const char* to) {
  using rubato::test::g_calls;
  if (g_calls != nullptr && g_calls->note_rename(from, to) != 0) return -1;
  return real_rename(from, to);
}
}
