#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rubato/libtorch/model.hpp>

namespace rubato {

/// Layout of tensors that lie one after the other in one flat buffer.
///
/// Every tensor begins at a multiple of 64 bytes (the padding between them is always zero), so a
/// tensor is aligned in the same way in every buffer and kernels take the same path.
class FlatLayout {
 public:
  FlatLayout() = default;
  /// All tensors must be of type `type`; their values are ignored.
  FlatLayout(std::span<const NamedTensor> tensors, at::ScalarType type);

  /// Number of elements in the flat buffer, including padding; a multiple of 64 bytes.
  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] at::ScalarType type() const { return type_; }
  /// End of each tensor, including the padding after it.
  [[nodiscard]] std::vector<std::size_t> ends() const;

  /// The tensors as views of a flat buffer that is a tensor: element i of the result has the shape
  /// of tensor i. `flat` is one-dimensional with at least size() elements from `offset` on.
  [[nodiscard]] std::vector<at::Tensor> views(const at::Tensor& flat,
                                              std::int64_t offset = 0) const;
  /// Views of memory that must outlive them.
  [[nodiscard]] std::vector<at::Tensor> views(void* memory) const;

 private:
  struct Segment {
    std::int64_t offset;
    std::vector<std::int64_t> shape;
  };
  std::vector<Segment> segments_;
  std::int64_t size_ = 0;
  at::ScalarType type_ = at::kFloat;
};

}  // namespace rubato
