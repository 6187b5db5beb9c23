#pragma once

#include <cstdint>
#include <filesystem>

namespace rubato {

/// Leaves word in a folder that its run has gone on in another one since `steps`: hosts that come
/// and go could not go on in it. Where that cannot be written, it is not.
void mark_moved(const std::filesystem::path& folder, const std::filesystem::path& to,
                std::int64_t steps) noexcept;
/// The run is back.
void unmark_moved(const std::filesystem::path& folder) noexcept;
/// Throws Error, with the other folder, where there is such word.
void require_not_moved(const std::filesystem::path& folder);

}  // namespace rubato
