#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rubato::page {

/// A Content-Security-Policy that allows a page exactly these inline scripts and styles, by their
/// hashes: the page can load nothing and send nothing.
[[nodiscard]] std::string security_policy(std::span<const std::string_view> scripts,
                                          std::span<const std::string_view> styles);

}  // namespace rubato::page
