#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/state.hpp>

#include "zip_records.hpp"

namespace rubato {

/// A dense tensor of a file of torch.save(): a view of a storage, which several may share.
struct SavedTensor {
  std::string name;
  ElementType type = ElementType::f32;
  /// Little-endian, aligned to nothing.
  std::string_view storage{};
  /// Where it begins, in elements of the storage.
  std::int64_t offset = 0;
  /// Empty for a single number.
  std::vector<std::int64_t> shape{};
  /// In elements; none is negative.
  std::vector<std::int64_t> strides{};
  /// The tensor is the negative of what the storage has, as PyTorch leaves the imaginary part of a
  /// conjugate. Its type is then a floating-point one.
  bool is_negated = false;
};

/// Picks the names that are wanted from those in a file.
using PickNames = std::function<std::vector<std::string>(const std::vector<std::string>& names)>;

/// The tensors of the dictionary, or OrderedDict, that torch.save() wrote, in the dictionary's
/// order. `records` are those of the file and have a data.pkl, `source` stands for the file in
/// messages, and `accepted` says what is wanted. With `pick`, only what it picks has to be a
/// tensor.
///
/// Nothing that the file names is called, no number is copied, and every tensor lies within its
/// storage. Throws Error for what is damaged, compressed, or no dictionary of dense tensors.
[[nodiscard]] std::vector<SavedTensor> read_saved_tensors(
    const std::map<std::string, ZipRecord>& records, const std::string& source,
    std::string_view accepted, const PickNames& pick = {});

/// Throws Error where the bytes are a file that PyTorch before 1.6 wrote, which is no archive.
void refuse_old_torch_file(std::string_view bytes, const std::string& source,
                           std::string_view accepted);

}  // namespace rubato
