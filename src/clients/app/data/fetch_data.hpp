#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "download.hpp"
#include "loop/data/published_data.hpp"

namespace rubato::app {

/// Called now and then with the file that is coming, how much of it there is, and its size.
using DataProgress =
    std::function<void(std::string_view file, std::int64_t bytes, std::int64_t size)>;

/// Whether all files of a data set are in a folder, as they were published.
[[nodiscard]] bool has_data(const PublishedData& data, const std::filesystem::path& folder);

/// Brings the files of a data set into a folder, from behind the address `from`; those that are
/// there already stay. A file comes as NAME.part, goes on where an earlier call was cut off, and
/// gets its name, or is unpacked, only once its size and its SHA-256 are right; what was continued
/// and is wrong is fetched once more from its beginning. Throws FetchError
/// where something else comes or nothing, and OutputError where the folder cannot be written.
void fetch_data(const PublishedData& data, const std::string& from,
                const std::filesystem::path& folder, const DataProgress& progress);

}  // namespace rubato::app
