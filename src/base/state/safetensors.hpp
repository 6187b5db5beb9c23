#pragma once

#include <string_view>

#include <rubato/base/state.hpp>

namespace rubato {

/// The arrays in the bytes of a safetensors file, whichever program wrote it; `source` names the
/// file in messages. One of state_bytes() is read as parse_state() does. Others have no checksum,
/// so that only sizes and types are verified. Throws Error, and NewerVersion.
[[nodiscard]] State parse_arrays(std::string_view bytes, std::string_view source);

}  // namespace rubato
