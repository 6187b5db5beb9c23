#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include <rubato/base/state.hpp>

namespace rubato::app {

/// Reads the regular files of a .tar.gz, one after the other: `take` gets the last part of the
/// name, the size, and what gives the bytes, which it may call once or not at all. Nothing is
/// written. Throws Error for what is no such archive.
void read_tar_gz(const std::filesystem::path& archive,
                 const std::function<void(const std::string& name, std::int64_t size,
                                          const ByteSource& bytes)>& take);

}  // namespace rubato::app
