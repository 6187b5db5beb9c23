#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include <sys/resource.h>

#include <rubato/base/error.hpp>

#include "support/sanitizers.hpp"

namespace rubato::test {

/// Takes the bytes of a file.
using TakeFile = std::function<void(const std::string& bytes)>;

/// The file cut at every `step`-th length.
inline void for_each_cut(const std::string& good, const TakeFile& take, std::size_t step = 1) {
  for (std::size_t length = 0; length < good.size(); length += step) take(good.substr(0, length));
}

/// The file with one byte changed, in three ways at every `step`-th place.
inline void for_each_changed_byte(const std::string& good, const TakeFile& take,
                                  std::size_t step = 1) {
  for (std::size_t at = 0; at < good.size(); at += step) {
    for (const int value : {0x00, 0xFF, good[at] ^ 1}) {
      std::string bad = good;
      bad[at] = static_cast<char>(value);
      take(bad);
    }
  }
}

/// For EXPECT_EXIT: reads files in `gigabytes` of address space and ends the process, with 0 where
/// each was read or refused with an Error of a line or two.
[[noreturn]] inline void exit_after_reading(
    const std::function<void(const TakeFile& take)>& for_each_file, const TakeFile& read,
    rlim_t gigabytes = 1) {
  // A sanitizer has terabytes of addresses from the start.
  if (!kSanitized) {
    const rlim_t most = gigabytes << 30U;
    const rlimit limit{.rlim_cur = most, .rlim_max = most};
    setrlimit(RLIMIT_AS, &limit);
  }
  for_each_file([&read](const std::string& bytes) {
    try {
      read(bytes);
    } catch (const Error& error) {
      const std::string message = error.what();
      if (std::count(message.begin(), message.end(), '\n') < 2 && message.size() <= 1000) return;
      std::fprintf(stderr, "a message of %zu characters: %s\n", message.size(), message.c_str());
      std::exit(1);
    }
  });
  std::exit(0);
}

}  // namespace rubato::test
