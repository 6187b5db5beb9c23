#pragma once

#include <cstdint>

#include <rubato/loop/images.hpp>

namespace rubato {

/// Renders `count` >= 0 images of handwritten-looking digits, 28 x 28: strokes under a random
/// affine distortion, with random width, blur and noise. Image i depends only on (seed, i): the
/// bits are the same on every machine, with every compiler and number of threads.
///
/// Images 10k to 10k + 9 show every digit once, in a random order. An image takes about 8
/// microseconds of a thread; all CPUs are used.
[[nodiscard]] ImageSet render_digits(std::int64_t count, std::uint64_t seed);

/// The built-in data set: 12,000 training and 2,000 test digits from disjoint random streams.
///
/// It is hard enough to distinguish models, and easy enough for a small one: a linear model on the
/// pixels classifies about 90 % of the test digits correctly, the usual two-layer convolutional
/// network for MNIST 98 to 99 % after five epochs (tests/data/digits_hardness_test.cpp).
[[nodiscard]] TrainTestImages builtin_digits();

}  // namespace rubato
