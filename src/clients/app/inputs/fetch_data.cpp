// There are two layers: download() transfers one file with libcurl, and fetch_data() compares files
// with their published size and SHA-256 and unpacks archives with tar in a child process. A partial
// file is continued by a range request, and downloaded from its beginning if the server refuses the
// range. An answer that was cut off stays on disk for the next call; a complete answer of another
// length is another file, such as a login page, and is removed. Archives have no hashes of the
// files in them, so has_data() compares only the sizes of unpacked files.

#include "fetch_data.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <curl/curl.h>
#include <fmt/format.h>

#include "base/core/file.hpp"
#include "base/core/process.hpp"
#include "base/state/sha256.hpp"

namespace rubato::app {

namespace {

constexpr long kConnectSeconds = 30;
// A connection that brings no byte for this long is given up.
constexpr long kSilentSeconds = 30;

// One answer of a server, which is appended to the file.
struct Answer {
  std::ofstream file{};
  std::int64_t bytes = 0;
  std::int64_t size = 0;
  const FetchProgress* progress = nullptr;
  bool too_long = false;
  int write_error = 0;
};

// Called by libcurl. A result below `count` ends the transfer.
std::size_t take_bytes(char* bytes, std::size_t /*one*/, std::size_t count, void* to) {
  Answer& answer = *static_cast<Answer*>(to);
  if (std::cmp_greater(count, answer.size - answer.bytes)) {
    answer.too_long = true;
    return 0;
  }
  errno = 0;
  if (!answer.file.write(bytes, static_cast<std::streamsize>(count)).flush()) {
    answer.write_error = errno == 0 ? EIO : errno;
    return 0;
  }
  answer.bytes += static_cast<std::int64_t>(count);
  (*answer.progress)(answer.bytes);
  return count;
}

class Curl {
 public:
  Curl() : handle_(curl_easy_init(), curl_easy_cleanup) {
    if (handle_ == nullptr) throw FetchError("libcurl cannot be started");
  }

  template <class Value>
  void set(CURLoption option, Value value) {
    if (curl_easy_setopt(handle_.get(), option, value) != CURLE_OK) {
      throw FetchError(fmt::format("libcurl does not know option {}", static_cast<int>(option)));
    }
  }
  [[nodiscard]] CURLcode perform() { return curl_easy_perform(handle_.get()); }
  [[nodiscard]] long status() {
    long status = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
    return status;
  }
  // Returns whether the server has announced the length of its answer.
  [[nodiscard]] bool has_length() {
    curl_off_t length = -1;
    curl_easy_getinfo(handle_.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    return length >= 0;
  }

 private:
  std::unique_ptr<CURL, void (*)(CURL*)> handle_;
};

// Returns -1 if there is no such file.
std::int64_t size_of(const std::filesystem::path& file) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  return error ? -1 : static_cast<std::int64_t>(size);
}

[[noreturn]] void fail(const std::string& url, const Answer& answer, CURLcode code, long status) {
  if (answer.too_long) {
    throw FetchError(
        fmt::format("{}: is longer than {} bytes; accepted: the published file", url, answer.size));
  }
  if (code == CURLE_HTTP_RETURNED_ERROR) {
    throw FetchError(
        fmt::format("{}: the server answers {}; accepted: another --from", url, status));
  }
  throw FetchError(fmt::format("{}: {} after {} of {} bytes; the same command continues", url,
                               curl_easy_strerror(code), answer.bytes, answer.size));
}

// Appends the rest of the file to `part`. Returns false if the server cannot send a part of the
// file, or the file is already longer than it should be.
bool ask_for_rest(const std::string& url, const std::filesystem::path& part, Answer& answer) {
  answer.bytes = std::max<std::int64_t>(size_of(part), 0);
  if (answer.bytes >= answer.size) return answer.bytes == answer.size;
  errno = 0;
  answer.file.open(part, std::ios::binary | std::ios::app);
  if (!answer.file) {
    throw OutputError(
        fmt::format("{}: cannot write: {}", part.string(), std::generic_category().message(errno)));
  }
  Curl curl;
  curl.set(CURLOPT_URL, url.c_str());
  curl.set(CURLOPT_PROTOCOLS_STR, "http,https");
  curl.set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl.set(CURLOPT_FOLLOWLOCATION, 1L);
  curl.set(CURLOPT_FAILONERROR, 1L);
  curl.set(CURLOPT_NOSIGNAL, 1L);
  curl.set(CURLOPT_USERAGENT, "rubato/" RUBATO_VERSION);
  curl.set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl.set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl.set(CURLOPT_LOW_SPEED_TIME, kSilentSeconds);
  curl.set(CURLOPT_WRITEFUNCTION, &take_bytes);
  curl.set(CURLOPT_WRITEDATA, static_cast<void*>(&answer));
  if (answer.bytes > 0) curl.set(CURLOPT_RESUME_FROM_LARGE, curl_off_t{answer.bytes});
  const bool resumes = answer.bytes > 0;
  const CURLcode code = curl.perform();
  if (answer.write_error != 0) {
    throw OutputError(fmt::format("{}: cannot write: {}", part.string(),
                                  std::generic_category().message(answer.write_error)));
  }
  constexpr long kNoSuchRange = 416;
  if (resumes && (code == CURLE_RANGE_ERROR || curl.status() == kNoSuchRange)) return false;
  if (code != CURLE_OK) fail(url, answer, code, curl.status());
  if (answer.bytes == answer.size) return true;
  // An answer without an announced length may have been cut off.
  if (resumes || !curl.has_length()) fail(url, answer, CURLE_PARTIAL_FILE, 0);
  // The answer is complete and is another file, such as the login page of a network.
  std::error_code ignored;
  std::filesystem::remove(part, ignored);
  throw FetchError(
      fmt::format("{}: the server answers with {} bytes; accepted: the published file of {}", url,
                  answer.bytes, answer.size));
}

}  // namespace

void download(const std::string& url, const std::filesystem::path& part, std::int64_t size,
              const FetchProgress& progress) {
  Answer answer{.size = size, .progress = &progress};
  if (ask_for_rest(url, part, answer)) return;
  std::error_code ignored;
  std::filesystem::remove(part, ignored);
  Answer whole{.size = size, .progress = &progress};
  static_cast<void>(ask_for_rest(url, part, whole));
}

namespace {

namespace fs = std::filesystem;

bool is_published(const fs::path& file, const PublishedFile& published) {
  return size_of(file) == published.size && Sha256::hex_of_file(file) == published.sha256;
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
                                   "--no-same-owner",
                                   "--strip-components=1",
                                   "--wildcards",
                                   "--extract",
                                   "--gzip",
                                   "--file=" + archive.string(),
                                   "--directory=" + folder.string()};
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
      return size_of(folder / name) == data.unpacked_size;
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
