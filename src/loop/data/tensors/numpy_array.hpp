#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "number_array.hpp"

namespace rubato {

/// Parses the array in the bytes of a .npy file of version 1 to 3, which `owner` holds. Messages
/// name it as `name` ("data.npz: 'x'"). The numbers are copied if they are in column-major order.
/// Throws Error.
[[nodiscard]] NumberArray parse_npy(std::string_view bytes,
                                    const std::shared_ptr<const void>& owner,
                                    const std::string& name);

/// Returns the size of a .npy file in bytes, according to its header. Throws Error.
[[nodiscard]] std::uint64_t npy_size(std::string_view beginning, const std::string& name);

}  // namespace rubato
