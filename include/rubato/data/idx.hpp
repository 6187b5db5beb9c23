#pragma once

#include <filesystem>

#include <rubato/data/image_set.hpp>

namespace rubato {

/// Reads an IDX image file (magic 0x00000803) and its label file (0x00000801), each raw or gzipped
/// (told by content, not by name). Throws Error with the file and what is wrong: unreadable,
/// truncated, damaged, longer than its header says, another magic, no images, images of no pixels,
/// counts that disagree, a label above 9. What is allocated grows with the data that the file
/// really holds, whatever its header claims.
[[nodiscard]] ImageSet read_idx(const std::filesystem::path& images,
                                const std::filesystem::path& labels);

/// Reads the training and the test set of a folder that holds the four files of MNIST,
/// Fashion-MNIST or KMNIST under any of their usual names: train-images-idx3-ubyte,
/// train-images.idx3-ubyte, t10k-..., each with or without .gz. Throws Error naming the file that
/// is missing and the names that would be accepted, or both sizes when training and test images
/// differ in theirs.
[[nodiscard]] TrainTestImages read_idx_folder(const std::filesystem::path& folder);

}  // namespace rubato
