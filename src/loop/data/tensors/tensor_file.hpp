#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "number_array.hpp"
#include "saved_tensors.hpp"

namespace rubato {

/// Reads the arrays of a file by their names: of a dictionary of tensors that Python's torch.save()
/// wrote, or of an archive of numpy.savez() or numpy.savez_compressed(). The content tells them
/// apart. Nothing that the file names is called. Arrays that are stored uncompressed and in
/// row-major order are mapped, not copied. With `pick`, only the names that it returns must be
/// arrays.
///
/// Throws Error with the file, the cause and what would be accepted. Allocations grow with what the
/// file really holds, whatever it claims.
[[nodiscard]] std::map<std::string, NumberArray> read_tensor_file(const std::filesystem::path& path,
                                                                  const PickNames& pick = {});

}  // namespace rubato
