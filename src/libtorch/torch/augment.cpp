#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/Functions.h>

#include <rubato/libtorch/trainer.hpp>

#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"

namespace rubato {

namespace {

void require_images(const at::Tensor& inputs, std::string_view what) {
  if (inputs.dim() == 4) return;
  throw_error("images to {} have {} dimensions; accepted: samples x channels x height x width",
              what, inputs.dim());
}

// Cuts a window of the original size out of each image, at a random place of the image padded by
// `pixels` on each side.
at::Tensor windows(const at::Tensor& padded, const at::Tensor& inputs, std::int64_t pixels) {
  const at::Tensor origins = at::randint(2 * pixels + 1, {inputs.size(0), 2}, at::kLong);
  const auto origin = origins.accessor<std::int64_t, 2>();
  std::vector<at::Tensor> images;
  for (std::int64_t i = 0; i < inputs.size(0); ++i) {
    images.push_back(
        padded[i].narrow(1, origin[i][0], inputs.size(2)).narrow(2, origin[i][1], inputs.size(3)));
  }
  return at::stack(images);
}

Augmentation one(const AugmentationOptions& options) {
  switch (options.kind) {
    case AugmentationKind::shift:
      return random_shift(options.pixels);
    case AugmentationKind::flip:
      return random_flip();
    case AugmentationKind::crop:
      return random_crop(options.pixels);
    case AugmentationKind::cutout:
      return random_cutout(options.pixels);
  }
  return {};
}

}  // namespace

Augmentation random_shift(std::int64_t pixels) {
  if (pixels < 0) throw_error("a shift of {} pixels: at least 0 is needed", pixels);
  return [pixels](const at::Tensor& inputs) {
    require_images(inputs, "shift");
    const at::Tensor padded = at::replication_pad2d(inputs, {pixels, pixels, pixels, pixels});
    return windows(padded, inputs, pixels);
  };
}

Augmentation random_flip() {
  return [](const at::Tensor& inputs) {
    require_images(inputs, "flip");
    const at::Tensor heads = at::randint(2, {inputs.size(0), 1, 1, 1}, at::kLong).to(at::kBool);
    return at::where(heads, inputs.flip({3}), inputs);
  };
}

Augmentation random_crop(std::int64_t padding) {
  if (padding < 0) throw_error("a padding of {} pixels: at least 0 is needed", padding);
  return [padding](const at::Tensor& inputs) {
    require_images(inputs, "crop");
    const at::Tensor padded = at::constant_pad_nd(inputs, {padding, padding, padding, padding}, 0);
    return windows(padded, inputs, padding);
  };
}

Augmentation random_cutout(std::int64_t size) {
  if (size < 1) throw_error("a square of {} pixels: at least 1 is needed", size);
  return [size](const at::Tensor& inputs) {
    require_images(inputs, "cut out");
    const std::int64_t height = inputs.size(2);
    const std::int64_t width = inputs.size(3);
    const at::Tensor rows = at::randint(height, {inputs.size(0)}, at::kLong);
    const at::Tensor columns = at::randint(width, {inputs.size(0)}, at::kLong);
    const auto row = rows.accessor<std::int64_t, 1>();
    const auto column = columns.accessor<std::int64_t, 1>();
    // The inputs may be a view of the data set's own tensors.
    at::Tensor images = inputs.clone();
    // Begin and end of the square in a dimension of this length.
    const auto span = [size](std::int64_t middle, std::int64_t length) {
      const std::int64_t begin = middle - size / 2;
      return std::pair(std::max<std::int64_t>(0, begin), std::min(length, begin + size));
    };
    for (std::int64_t i = 0; i < images.size(0); ++i) {
      const auto [top, bottom] = span(row[i], height);
      const auto [left, right] = span(column[i], width);
      images[i].narrow(1, top, bottom - top).narrow(2, left, right - left).zero_();
    }
    return images;
  };
}

Augmentation augmentation(const std::vector<AugmentationOptions>& options) {
  if (options.empty()) return {};
  return [all = vector_of(options, one)](const at::Tensor& inputs) {
    at::Tensor images = inputs;
    for (const Augmentation& each : all) images = each(images);
    return images;
  };
}

}  // namespace rubato
