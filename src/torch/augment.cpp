#include <vector>

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/torch/augment.hpp>

namespace rubato {

Augmentation random_shift(std::int64_t pixels) {
  if (pixels < 0) throw Error(fmt::format("a shift of {} pixels: at least 0 is needed", pixels));
  return [pixels](const at::Tensor& inputs) {
    if (inputs.dim() != 4) {
      throw Error(fmt::format(
          "images to shift have {} dimensions; accepted: samples x channels x height x width",
          inputs.dim()));
    }
    const at::Tensor padded = at::replication_pad2d(inputs, {pixels, pixels, pixels, pixels});
    // Of each image, where the window on the padded one begins.
    const at::Tensor origins = at::randint(2 * pixels + 1, {inputs.size(0), 2}, at::kLong);
    const auto origin = origins.accessor<std::int64_t, 2>();
    std::vector<at::Tensor> images;
    for (std::int64_t i = 0; i < inputs.size(0); ++i) {
      images.push_back(padded[i]
                           .narrow(1, origin[i][0], inputs.size(2))
                           .narrow(2, origin[i][1], inputs.size(3)));
    }
    return at::stack(images);
  };
}

}  // namespace rubato
