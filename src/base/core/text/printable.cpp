#include "printable.hpp"

#include <cstddef>

namespace rubato {

std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    // In UTF-8 the control characters from 0x80 to 0x9F have two bytes.
    const bool is_long = byte == 0xC2 && next >= 0x80 && next < 0xA0;
    const bool is_control = is_long || (byte < 0x20 && byte != '\n') || byte == 0x7F;
    shown += is_control ? '?' : text[i];
    if (is_long) ++i;
  }
  return shown;
}

}  // namespace rubato
