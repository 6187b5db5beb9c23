#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/state.hpp>

#include "number_array.hpp"
#include "zip_archive.hpp"

namespace rubato {

/// A dense tensor in a file of torch.save(): a view of a storage, which several may share.
struct SavedTensor {
  std::string name;
  ElementType type = ElementType::f32;
  /// The numbers, little-endian, without alignment.
  std::string_view storage{};
  /// The beginning of the tensor, in elements of the storage.
  std::int64_t offset = 0;
  /// The shape; empty for a single number.
  std::vector<std::int64_t> shape{};
  /// The strides in elements; none is negative.
  std::vector<std::int64_t> strides{};
  /// True if the tensor is the negative of the storage, as PyTorch leaves the imaginary part of a
  /// conjugate. Its type is then a floating-point one.
  bool is_negated = false;
};

/// Selects the wanted names from those in a file.
using PickNames = std::function<std::vector<std::string>(const std::vector<std::string>& names)>;

/// Reads the tensors of the dictionary, or OrderedDict, that torch.save() wrote, in the
/// dictionary's order. `records` are those of the file and contain a data.pkl. Messages name the
/// file as `source`, and the wanted content as `accepted`. With `pick`, only the names that it
/// returns must be tensors.
///
/// Nothing that the file names is called, no number is copied, and every tensor lies within its
/// storage. Throws Error for a file that is damaged, compressed, or not a dictionary of dense
/// tensors.
[[nodiscard]] std::vector<SavedTensor> read_saved_tensors(
    const std::map<std::string, ZipRecord>& records, const std::string& source,
    std::string_view accepted, const PickNames& pick = {});

/// Throws Error if the bytes are a file that PyTorch before 1.6 wrote, which is not an archive.
void refuse_old_torch_file(std::string_view bytes, const std::string& source,
                           std::string_view accepted);

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
