#include "fetch_data.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/core/system/file.hpp"
#include "base/core/system/process.hpp"
#include "base/state/sha256.hpp"

namespace rubato::app {

namespace {

namespace fs = std::filesystem;

bool has_size(const fs::path& file, std::int64_t size) {
  std::error_code error;
  const std::uintmax_t found = fs::file_size(file, error);
  return !error && std::cmp_equal(found, size);
}

bool is_published(const fs::path& file, const PublishedFile& published) {
  return has_size(file, published.size) && Sha256::hex_of_file(file) == published.sha256;
}

// Downloads a file and compares it with the published one; a wrong file is removed.
void bring(const std::string& url, const fs::path& part, const PublishedFile& published,
           const FetchProgress& progress) {
  std::error_code ignored;
  // A beginning that was there already may belong to another file; the download is then repeated.
  bool continues = fs::exists(part, ignored);
  while (true) {
    download(url, part, published.size, progress);
    const std::string sum = Sha256::hex_of_file(part);
    if (sum == published.sha256) return;
    fs::remove(part, ignored);
    if (!std::exchange(continues, false)) {
      throw FetchError(fmt::format("{}: its SHA-256 is {}; accepted: {}, of the published file",
                                   url, sum, published.sha256));
    }
  }
}

void rename_to(const fs::path& part, const fs::path& file) {
  std::error_code error;
  fs::rename(part, file, error);
  if (error) {
    throw OutputError(fmt::format("{}: cannot write: {}", file.string(), error.message()));
  }
}

// Unpacks with tar, which every Debian has and which prints its own errors.
void unpack(const PublishedData& data, const fs::path& archive, const fs::path& folder) {
  std::vector<std::string> command{"env",
                                   "tar",
                                   "--extract",
                                   "--gzip",
                                   "--file",
                                   archive.string(),
                                   "--directory",
                                   folder.string(),
                                   "--no-same-owner",
                                   "--strip-components=1",
                                   "--wildcards"};
  for (const std::string_view name : data.unpacked) command.push_back(fmt::format("*/{}", name));
  const pid_t child = start_child("/usr/bin/env", command, tie_to);
  if (child > 0) await_child(child);
  if (has_data(data, folder)) {
    std::error_code ignored;
    fs::remove(archive, ignored);
    return;
  }
  throw OutputError(
      fmt::format("{}: cannot be unpacked into {}", archive.string(), folder.string()));
}

}  // namespace

bool has_data(const PublishedData& data, const fs::path& folder) {
  if (!data.unpacked.empty()) {
    return std::ranges::all_of(data.unpacked, [&](std::string_view name) {
      return has_size(folder / name, data.unpacked_size);
    });
  }
  return std::ranges::all_of(data.files, [&](const PublishedFile& file) {
    return is_published(folder / file.name, file);
  });
}

void fetch_data(const PublishedData& data, const std::string& from, const fs::path& folder,
                const DataProgress& progress) {
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  for (const PublishedFile& file : data.files) {
    const fs::path whole = folder / file.name;
    const fs::path part = fs::path(whole) += ".part";
    if (data.unpacked.empty() && is_published(whole, file)) continue;
    const std::string url = fmt::format("{}{}{}", from, from.ends_with('/') ? "" : "/", file.name);
    bring(url, part, file, [&](std::int64_t bytes) { progress(file.name, bytes, file.size); });
    data.unpacked.empty() ? rename_to(part, whole) : unpack(data, part, folder);
  }
}

}  // namespace rubato::app
