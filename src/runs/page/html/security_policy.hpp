#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rubato::page {

/// A Content-Security-Policy under which a page has these scripts and these styles, inside it and
/// bit for bit, and nothing else: it loads nothing, and sends nothing.
[[nodiscard]] std::string security_policy(std::span<const std::string_view> scripts,
                                          std::span<const std::string_view> styles);

}  // namespace rubato::page
