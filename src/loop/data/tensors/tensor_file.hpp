#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "number_array.hpp"
#include "saved_tensors.hpp"

namespace rubato {

/// The arrays of a file by their names: of a dictionary of tensors that torch.save() in Python
/// wrote, or of an archive of numpy.savez() or numpy.savez_compressed(). Told apart by content.
/// Nothing that the file names is called. What is stored as it is, and in row-major order, is
/// mapped and not copied. With `pick`, only what it picks has to be an array.
///
/// Throws Error with the file, what is wrong with it and what would be accepted. What is allocated
/// grows with what the file really holds, whatever it claims.
[[nodiscard]] std::map<std::string, NumberArray> read_tensor_file(const std::filesystem::path& path,
                                                                  const PickNames& pick = {});

}  // namespace rubato
