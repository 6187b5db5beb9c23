#pragma once

#include <rubato/loop/workers.hpp>

namespace rubato::lab {

/// Bandwidth of main memory in bytes per second, by the triad of McCalpin's STREAM, a[i] = b[i] + s
/// c[i]: the best of several passes on all threads; counted as STREAM does, 24 bytes for an
/// element.
[[nodiscard]] double triad_bandwidth(Workers& workers);

}  // namespace rubato::lab
