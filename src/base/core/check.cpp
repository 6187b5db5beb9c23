#include "check.hpp"

#include <cstdio>
#include <cstdlib>

namespace rubato::detail {

void check_failed(std::string_view condition, std::string_view reason, std::string_view file,
                  int line) noexcept {
  std::fprintf(stderr, "rubato: internal error: %.*s (%.*s does not hold, %.*s:%d)\n",
               static_cast<int>(reason.size()), reason.data(), static_cast<int>(condition.size()),
               condition.data(), static_cast<int>(file.size()), file.data(), line);
  std::abort();
}

}  // namespace rubato::detail
