#include "run/images.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rubato/data/idx.hpp>

#include "config/data_source.hpp"
#include "core/check.hpp"
#include "core/memory.hpp"
#include "data/digits.hpp"
#include "state/sha256.hpp"

namespace rubato {

namespace {

// How the data sets of data_sources() are read, by kind.
struct ImageLoader {
  std::string_view kind;
  TrainTestImages (*load)(const std::string& argument);
};

constexpr std::array<ImageLoader, 2> kImageLoaders{
    {{"digits", [](const std::string& /*none*/) { return builtin_digits(); }},
     {"mnist", [](const std::string& folder) { return read_idx_folder(folder); }}}};

TrainTestImages read_images(const std::string& text) {
  if (text == kOwn) {
    throw Error(
        "--data own: the data are in the program that trained on them; accepted: that program, or "
        "the name of a data set (rubato list data)");
  }
  const DataName name = data_name(text);
  const auto* const found = std::ranges::find(kImageLoaders, name.kind, &ImageLoader::kind);
  RUBATO_CHECK(found != kImageLoaders.end(), "a data set that the configuration has let pass");
  return found->load(name.argument);
}

}  // namespace

TrainTestImages load_images(const RunConfiguration& configuration) {
  TrainTestImages images = read_images(configuration.data);
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
