#pragma once

namespace rubato {

/// The conversion between times in seconds and hours, which people and prices use.
inline constexpr double kSecondsOfHour = 3600;

}  // namespace rubato
