#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include <rubato/base/error.hpp>

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

}  // namespace rubato::app
