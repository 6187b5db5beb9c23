#pragma once

#include <cstdint>
#include <filesystem>

namespace rubato {

/// Leaves a note in a folder that its run has continued in the folder `to` since `steps`, because
/// hosts that come and go could not continue it here. Ignores failure to write the note.
void mark_moved(const std::filesystem::path& folder, const std::filesystem::path& to,
                std::int64_t steps) noexcept;
/// Removes the note, when the run is back.
void unmark_moved(const std::filesystem::path& folder) noexcept;
/// Throws Error, naming the other folder, if there is such a note.
void require_not_moved(const std::filesystem::path& folder);

}  // namespace rubato
