#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "support/temp_folder.hpp"

namespace rubato::test {

/// Writes `count` images of `size` x `size`, each a bright row whose height is its label, as the
/// IDX files of `set` ("train", "t10k") into the folder `where` of `folder`.
inline void write_idx_images(const TempFolder& folder, const std::filesystem::path& where,
                             const std::string& set, std::uint32_t count, std::uint32_t size) {
  const auto append_number = [](std::string& bytes, std::uint32_t number) {
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
      bytes += static_cast<char>(number >> shift & 0xFFU);
    }
  };
  std::string images;
  for (const std::uint32_t number : {0x803U, count, size, size}) append_number(images, number);
  std::string labels;
  for (const std::uint32_t number : {0x801U, count}) append_number(labels, number);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t label = (i * 7 + i / 10) % 10;
    labels += static_cast<char>(label);
    for (std::uint32_t row = 0; row < size; ++row) {
      for (std::uint32_t column = 0; column < size; ++column) {
        const std::uint32_t noise = (i * 31 + row * 17 + column * 13) % 40;
        images += static_cast<char>(row == label ? 200 + noise : noise);
      }
    }
  }
  folder.write(where / (set + "-images-idx3-ubyte"), images);
  folder.write(where / (set + "-labels-idx1-ubyte"), labels);
}

}  // namespace rubato::test
