#pragma once

#include <functional>
#include <string_view>

namespace rubato {

/// Takes the next bytes of a file or of a message.
using ByteSink = std::function<void(std::string_view bytes)>;

/// Gives all bytes of something to a sink, in their order and piece by piece, so that what is large
/// never lies in memory as a whole.
using ByteSource = std::function<void(const ByteSink& sink)>;

}  // namespace rubato
