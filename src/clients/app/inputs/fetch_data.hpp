#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include <rubato/base/error.hpp>

#include "loop/data/published_data.hpp"

namespace rubato::app {

/// A server did not answer, or sent something other than the requested file.
class FetchError : public Error {
 public:
  using Error::Error;
};

/// Called now and then with the number of bytes that have arrived.
using FetchProgress = std::function<void(std::int64_t bytes)>;

/// Downloads the `size` bytes at `url` (http or https) into the file `part`. Bytes that the file
/// already has are kept and the rest is requested, or everything from a server that cannot send
/// parts. Throws FetchError if the download fails and OutputError if the file cannot be written;
/// the bytes received so far stay in the file, so that the next call continues, except those of a
/// complete answer that is too short. No more than `size` bytes are ever written.
void download(const std::string& url, const std::filesystem::path& part, std::int64_t size,
              const FetchProgress& progress);

/// Called now and then with the file that is being downloaded, its bytes so far, and its size.
using DataProgress =
    std::function<void(std::string_view file, std::int64_t bytes, std::int64_t size)>;

/// Returns whether all files of a data set are in the folder, as they were published.
[[nodiscard]] bool has_data(const PublishedData& data, const std::filesystem::path& folder);

/// Downloads the files of a data set from below the address `from` into a folder; files that are
/// there already stay. A file is downloaded as NAME.part, continued where an earlier call was cut
/// off, and renamed or unpacked only once its size and SHA-256 are right; if a continued file is
/// wrong, it is downloaded once more from its beginning. Throws FetchError if a file cannot be
/// downloaded or is not the published one, and OutputError if the folder cannot be written.
void fetch_data(const PublishedData& data, const std::string& from,
                const std::filesystem::path& folder, const DataProgress& progress);

}  // namespace rubato::app
