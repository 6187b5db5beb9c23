#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "download.hpp"
#include "loop/data/published_data.hpp"

namespace rubato::app {

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
