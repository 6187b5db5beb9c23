#include "fetch_data.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/core/system/file.hpp"
#include "base/state/sha256.hpp"
#include "tar_file.hpp"

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

// Before it is used for anything. What is wrong is not gone on with.
void require_published(const std::string& url, const fs::path& part,
                       const PublishedFile& published) {
  const std::string sum = Sha256::hex_of_file(part);
  if (sum == published.sha256) return;
  std::error_code ignored;
  fs::remove(part, ignored);
  throw FetchError(fmt::format("{}: its SHA-256 is {}; accepted: {}, of the published file", url,
                               sum, published.sha256));
}

void rename_to(const fs::path& part, const fs::path& file) {
  std::error_code error;
  fs::rename(part, file, error);
  if (error) {
    throw OutputError(fmt::format("{}: cannot write: {}", file.string(), error.message()));
  }
}

void unpack(const PublishedData& data, const fs::path& archive, const fs::path& folder) {
  read_tar_gz(archive, [&](const std::string& name, std::int64_t size, const ByteSource& bytes) {
    const bool wanted = std::ranges::find(data.unpacked, name) != data.unpacked.end();
    if (wanted && size == data.unpacked_size) write_file(folder / name, bytes);
  });
  if (has_data(data, folder)) {
    std::error_code ignored;
    fs::remove(archive, ignored);
    return;
  }
  throw FetchError(fmt::format("{}: lacks files of {}; accepted: the published archive",
                               archive.string(), data.name));
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
    download(url, part, file.size,
             [&](std::int64_t bytes) { progress(file.name, bytes, file.size); });
    require_published(url, part, file);
    data.unpacked.empty() ? rename_to(part, whole) : unpack(data, part, folder);
  }
}

}  // namespace rubato::app
