#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "number_array.hpp"

namespace rubato {

/// The array in the bytes of a .npy file of version 1 to 3, which `owner` holds. `name` says in
/// messages what it is ("data.npz: 'x'"). Copied where it is in column-major order. Throws Error.
[[nodiscard]] NumberArray parse_npy(std::string_view bytes,
                                    const std::shared_ptr<const void>& owner,
                                    const std::string& name);

/// How many bytes a .npy file has, by the header that it begins with. Throws Error.
[[nodiscard]] std::uint64_t npy_size(std::string_view beginning, const std::string& name);

}  // namespace rubato
