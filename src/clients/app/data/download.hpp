#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include <rubato/base/error.hpp>

namespace rubato::app {

/// A server did not answer, or answered something else than what was asked for.
class FetchError : public Error {
 public:
  using Error::Error;
};

/// Called with the bytes that are there, now and then.
using FetchProgress = std::function<void(std::int64_t bytes)>;

/// Brings what lies at `url` (http or https), `size` bytes, into the file `part`. What the file has
/// is kept and the rest asked for, or all of it from a server that gives no parts. Throws
/// FetchError where it does not come, and OutputError where the file cannot be written; what has
/// come stays in the file, so that the next call continues, unless it is a whole answer that is too
/// short. What is more than `size` is never written.
void download(const std::string& url, const std::filesystem::path& part, std::int64_t size,
              const FetchProgress& progress);

}  // namespace rubato::app
