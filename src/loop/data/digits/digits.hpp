#pragma once

#include <cstdint>

#include <rubato/loop/images.hpp>

namespace rubato {

/// Renders `count` >= 0 images of handwritten-looking digits, 28 x 28: strokes under a random
/// affine distortion, with random width, blur and noise. Image i depends on (seed, i) only; the
/// same bits on every machine, compiler and number of threads.
///
/// Images 10k to 10k + 9 show every digit once, in a random order. About 8 microseconds an image
/// and thread, on as many threads as there are CPUs.
[[nodiscard]] ImageSet render_digits(std::int64_t count, std::uint64_t seed);

/// The built-in data set: 12,000 training and 2,000 test digits from disjoint random streams.
///
/// Hard enough to tell models apart, easy enough for a small one: a linear model on the pixels gets
/// about 90 % of the test digits right, the two-layer convolutional network usual for MNIST 98 to
/// 99 % after five epochs (tests/data/digits_hardness_test.cpp).
[[nodiscard]] TrainTestImages builtin_digits();

}  // namespace rubato
