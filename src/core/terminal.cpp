#include "core/terminal.hpp"

#include <algorithm>

#include <sys/ioctl.h>

namespace rubato {

std::optional<std::size_t> terminal_columns(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

LineWidth line_width(int descriptor) {
  constexpr std::size_t kLeast = 20;
  const auto columns = terminal_columns(descriptor);
  return columns ? LineWidth{std::max(*columns, kLeast)} : LineWidth{};
}

}  // namespace rubato
