#pragma once

#include <cstdint>

#include <rubato/data/image_set.hpp>

namespace rubato {

/// Renders `count` images of handwritten-looking digits, 28 x 28: strokes under a random affine
/// distortion, with random width, blur and noise. Image i depends on (seed, i) only; the same bits on
/// every machine, compiler and number of threads.
[[nodiscard]] ImageSet render_digits(std::int64_t count, std::uint64_t seed);

/// The built-in data set: 12,000 training and 2,000 test digits from disjoint random streams.
[[nodiscard]] TrainTestImages builtin_digits();

}  // namespace rubato
