#pragma once

#include <cstddef>

namespace rubato::operators {

// One dimension of an image over which windows are moved.
struct Axis {
  // Numbers of values, of windows, and of the values in a window.
  std::ptrdiff_t input = 0;
  std::ptrdiff_t output = 0;
  std::ptrdiff_t kernel = 0;
  std::ptrdiff_t stride = 1;
  std::ptrdiff_t padding = 0;
  std::ptrdiff_t dilation = 1;
};

}  // namespace rubato::operators
