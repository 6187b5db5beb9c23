#pragma once

#include <string>

#include <rubato/config/run_configuration.hpp>
#include <rubato/data/image_set.hpp>

namespace rubato {

/// The images that a configuration names. Throws Error where they cannot be read, and MemoryError
/// where they would not fit as bytes and as floats.
[[nodiscard]] TrainTestImages load_images(const RunConfiguration& configuration);

/// The SHA-256 of pixels and labels as they were read: a quarter of the bytes that they become.
[[nodiscard]] std::string fingerprint_of(const ImageSet& images);

/// "mnist-cnn on digits: 12000 training and 2000 test images".
[[nodiscard]] std::string describe(const RunConfiguration& configuration,
                                   const TrainTestImages& images);

}  // namespace rubato
