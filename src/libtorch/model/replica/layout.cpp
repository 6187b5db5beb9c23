#include "layout.hpp"

#include <ATen/Functions.h>

#include "base/core/check.hpp"

namespace rubato {

namespace {

constexpr std::int64_t kAlignmentBytes = 64;

std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

}  // namespace

FlatLayout::FlatLayout(std::span<const NamedTensor> tensors, at::ScalarType type) : type_(type) {
  const auto alignment = kAlignmentBytes / static_cast<std::int64_t>(c10::elementSize(type));
  for (const auto& [name, tensor] : tensors) {
    RUBATO_CHECK(tensor.scalar_type() == type, "a flat buffer holds tensors of one type");
    segments_.push_back({size_, tensor.sizes().vec()});
    size_ += (tensor.numel() + alignment - 1) / alignment * alignment;
  }
}

std::vector<std::size_t> FlatLayout::ends() const {
  std::vector<std::size_t> ends;
  ends.reserve(segments_.size());
  for (std::size_t i = 1; i < segments_.size(); ++i) {
    ends.push_back(static_cast<std::size_t>(segments_[i].offset));
  }
  if (!segments_.empty()) ends.push_back(static_cast<std::size_t>(size_));
  return ends;
}

std::vector<at::Tensor> FlatLayout::views(const at::Tensor& flat, std::int64_t offset) const {
  std::vector<at::Tensor> views;
  views.reserve(segments_.size());
  for (const Segment& segment : segments_) {
    views.push_back(
        flat.as_strided(segment.shape, contiguous_strides(segment.shape), offset + segment.offset));
  }
  return views;
}

std::vector<at::Tensor> FlatLayout::views(void* memory) const {
  // Each view has a storage of its own, so that the views do not share a version counter.
  std::vector<at::Tensor> views;
  views.reserve(segments_.size());
  const auto element = static_cast<std::int64_t>(c10::elementSize(type_));
  for (const Segment& segment : segments_) {
    views.push_back(at::from_blob(static_cast<char*>(memory) + segment.offset * element,
                                  segment.shape, at::TensorOptions().dtype(type_)));
  }
  return views;
}

}  // namespace rubato
