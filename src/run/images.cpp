#include "run/images.hpp"

#include <cstdint>

#include <fmt/format.h>

#include <rubato/data/idx.hpp>

#include "config/data_source.hpp"
#include "core/memory.hpp"
#include "data/digits.hpp"
#include "state/sha256.hpp"

namespace rubato {

TrainTestImages load_images(const RunConfiguration& configuration) {
  const auto folder = mnist_folder(configuration.data);
  TrainTestImages images = folder ? read_idx_folder(*folder) : builtin_digits();
  double pixels = 0;
  for (const ImageSet* set : {&images.train, &images.test}) {
    pixels += static_cast<double>(set->pixels.size());
  }
  require_memory(
      pixels * (1 + sizeof(float)),
      fmt::format("the data, {} images of {} x {} pixels as bytes and as floats, need",
                  images.train.count + images.test.count, images.train.height, images.train.width),
      "fewer or smaller images need less");
  return images;
}

std::string fingerprint_of(const ImageSet& images) {
  Sha256 sha;
  sha.add(fmt::format("{}x{}x{}\n", images.count, images.height, images.width));
  sha.add(images.pixels.data(), images.pixels.size());
  sha.add(images.labels.data(), images.labels.size());
  return sha.hex();
}

std::string describe(const RunConfiguration& configuration, const TrainTestImages& images) {
  return fmt::format("{} on {}: {} training and {} test images", configuration.model,
                     configuration.data, images.train.count, images.test.count);
}

}  // namespace rubato
