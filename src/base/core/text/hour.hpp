#pragma once

namespace rubato {

/// Times are in seconds; people say hours, and prices are for one.
inline constexpr double kSecondsOfHour = 3600;

}  // namespace rubato
