// Reading a folder has three stages: parts_of() decides by the names of the sub-folders which of
// them have the training and the test images, files_of() lists the images of each class, and
// decoded() writes their pixels into one array. Names alone do not tell a split from a class that
// is called "train" or "test", so parts_of() also compares the sub-folders, and
// refuse_unnamed_split() rejects a folder whose classes look like parts. read_image_folder() reads
// the headers of all images before it decodes the first one, because all must have one size, and
// one coloured image gives all of them three channels. read_new_images() takes size and channels
// from the record of the model instead.

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/core/limits.hpp"
#include "base/core/text/csv.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "image_files.hpp"
#include "loop/data/data_files.hpp"
#include "loop/data/input_file.hpp"
#include "loop/data/tables/text.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kImageFolder =
    "a folder with a sub-folder of PNG or JPEG files for each class, or with train and test (or "
    "val), which have these";

// Names of the folders of a split, as part_of() reduces them. Those of test folders are in the
// order in which they are searched.
constexpr std::array<std::string_view, 2> kTrainFolders{"train", "training"};
constexpr std::array<std::string_view, 8> kTestFolders{
    "test", "testing", "val", "valid", "validation", "eval", "dev", "evaluation"};
// The names may also have these: training_set, test-images, seg_train, val2017.
constexpr std::array<std::string_view, 4> kEndings{"dataset", "data", "set", "images"};
constexpr std::string_view kBeginning = "seg";

// Returns the name of a folder as it stands in these lists: "Training_Set" is "training".
std::string part_of(const std::string& folder) {
  std::string name;
  for (const char c : folder) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalpha(byte) != 0) name += static_cast<char>(std::tolower(byte));
  }
  for (const std::string_view ending : kEndings) {
    if (!name.ends_with(ending)) continue;
    name.resize(name.size() - ending.size());
    break;
  }
  return name.starts_with(kBeginning) ? name.substr(kBeginning.size()) : name;
}

[[noreturn]] void fail_folder(const fs::path& folder, std::string_view why) {
  throw_error("{}: {}; accepted: {}", folder.string(), why, kImageFolder);
}

// Returns the entries of a folder in the order of their names, without hidden ones.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (!entry.path().filename().string().starts_with('.')) entries.push_back(entry.path());
    }
  } catch (const fs::filesystem_error& error) {
    fail_folder(folder, error.code().message());
  }
  std::ranges::sort(entries, {}, [](const fs::path& path) { return path.filename().string(); });
  return entries;
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders = entries_of(folder);
  std::erase_if(folders, [](const fs::path& path) { return !is_folder(path); });
  return folders;
}

bool is_image(const fs::path& path) {
  const std::string ending = lower_case(path.extension().string());
  return !is_folder(path) && (ending == ".png" || ending == ".jpg" || ending == ".jpeg");
}

// Returns whether images lie in the folder itself.
bool has_images(const fs::path& folder) {
  return std::ranges::any_of(entries_of(folder), is_image);
}

// An image, and the class of its folder.
struct ImageFile {
  fs::path path;
  std::int64_t label = 0;
};

struct ImageFiles {
  std::vector<ImageFile> images{};
  // The number of files with other endings.
  std::int64_t others = 0;

  // Adds the images of a folder, and then those of the folders in it. Links to folders within are
  // not followed, because they may lead back.
  void add(const fs::path& folder, std::int64_t label) {
    const std::vector<fs::path> entries = entries_of(folder);
    for (const fs::path& path : entries) {
      if (is_folder(path)) continue;
      if (is_image(path)) {
        images.push_back({path, label});
      } else {
        ++others;
      }
    }
    std::error_code ignored;
    for (const fs::path& path : entries) {
      if (is_folder(path) && !fs::is_symlink(path, ignored)) add(path, label);
    }
  }
};

std::vector<std::string> names_of(const std::vector<fs::path>& folders) {
  return vector_of(folders, [](const fs::path& path) { return path.filename().string(); });
}

// The folders of the training and the test images.
struct Parts {
  fs::path train{};
  std::optional<fs::path> test{};
  // A test folder whose images lie in no folders of classes, as Kaggle gives it.
  std::optional<fs::path> unlabelled{};
  std::vector<std::string> unused{};
};

// Returns whether all sub-folders of a test folder are those of a training folder, too.
bool is_split(const fs::path& train, const fs::path& test) {
  const std::vector<std::string> classes = names_of(folders_in(train));
  const std::vector<std::string> tested = names_of(folders_in(test));
  return !tested.empty() && std::ranges::all_of(tested, [&](const std::string& name) {
    return std::ranges::find(classes, name) != classes.end();
  });
}

// Archives are often unpacked into a folder of their own name: seg_train/seg_train.
fs::path innermost(const fs::path& folder) {
  const std::vector<fs::path> within = folders_in(folder);
  const bool repeats = within.size() == 1 && within.front().filename() == folder.filename();
  return repeats ? innermost(within.front()) : folder;
}

// If there are folders with other names, those of a split must have the same sub-folders: a folder
// called "train" may also be a class.
Parts parts_of(const fs::path& folder) {
  if (!is_folder(folder)) fail_folder(folder, "is not a folder");
  std::vector<fs::path> trains;
  std::vector<fs::path> tests;
  Parts parts{.train = folder};
  for (const fs::path& path : folders_in(folder)) {
    const std::string part = part_of(path.filename().string());
    if (std::ranges::find(kTrainFolders, part) != kTrainFolders.end()) {
      trains.push_back(innermost(path));
    } else if (std::ranges::find(kTestFolders, part) != kTestFolders.end()) {
      tests.push_back(innermost(path));
    } else {
      parts.unused.push_back(path.filename().string());
    }
  }
  if (trains.empty()) return {.train = folder};
  const bool splits = std::ranges::any_of(
      tests, [&](const fs::path& test) { return is_split(trains.front(), test); });
  if (!splits && !parts.unused.empty()) return {.train = folder};
  if (trains.size() > 1) {
    fail_folder(folder, fmt::format("{} are both of training images",
                                    fmt::join(names_of(trains), " and ")));
  }
  parts.train = trains.front();
  std::ranges::stable_sort(tests, {}, [](const fs::path& path) {
    return std::ranges::find(kTestFolders, part_of(path.filename().string()));
  });
  for (const fs::path& path : tests) {
    if (!parts.unlabelled && folders_in(path).empty() && has_images(path)) {
      parts.unlabelled = path;
    } else if (!parts.test) {
      parts.test = path;
    } else {
      parts.unused.push_back(path.filename().string());
    }
  }
  return parts;
}

// Throws Error if the folders that would be classes have the same sub-folders, so that they are the
// parts of a split whose names say nothing.
void refuse_unnamed_split(const fs::path& folder) {
  const std::vector<fs::path> folders = folders_in(folder);
  if (folders.size() < 2) return;
  const std::vector<std::string> first = names_of(folders_in(folders.front()));
  if (first.size() < 2) return;
  const bool same = std::ranges::all_of(folders, [&](const fs::path& path) {
    return names_of(folders_in(path)) == first && !has_images(path);
  });
  if (!same) return;
  fail_folder(folder,
              fmt::format("{} all have the sub-folders {}, as the parts of a split have",
                          detail::excerpt(fmt::to_string(fmt::join(names_of(folders), ", "))),
                          detail::excerpt(fmt::to_string(fmt::join(first, ", ")))));
}

// The names must be valid UTF-8, because they are written to the run's folder.
std::vector<std::string> class_names_of(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& path : folders_in(folder)) {
    names.push_back(path.filename().string());
    if (end_of_utf8(names.back()) < names.back().size()) {
      fail_folder(folder, fmt::format("the name of class {} is not in UTF-8", names.size()));
    }
  }
  if (names.empty()) fail_folder(folder, "it has no sub-folders");
  return names;
}

// Collects the images in the folders of the classes.
ImageFiles files_of(const fs::path& folder, const std::vector<std::string>& classes) {
  ImageFiles files;
  for (const fs::path& path : folders_in(folder)) {
    const std::string name = path.filename().string();
    const auto found = std::ranges::find(classes, name);
    if (found == classes.end()) {
      throw_error("{}: is not a class; accepted: a folder for each of {}", path.string(),
                  detail::excerpt(fmt::to_string(fmt::join(classes, ", "))));
    }
    const std::size_t before = files.images.size();
    files.add(path, found - classes.begin());
    if (files.images.size() == before) fail_folder(path, "it has no PNG or JPEG file");
  }
  if (files.images.empty()) fail_folder(folder, "it has no PNG or JPEG file");
  return files;
}

std::shared_ptr<const MappedFile> open_image(const fs::path& path) {
  return MappedFile::open(path, "a PNG or JPEG file");
}

// The common size of all images, with enough channels for each of them.
struct ImageShape {
  std::int64_t channels = 1;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::string first{};

  void see(const ImageFile& file) {
    const auto mapped = open_image(file.path);
    const Picture picture = read_picture(mapped->bytes(), file.path.string());
    if (!picture.is_grey) channels = 3;
    if (first.empty()) {
      height = picture.height;
      width = picture.width;
      first = file.path.string();
    } else if (picture.height != height || picture.width != width) {
      throw_error("{}: {} x {} pixels, and {} has {} x {}; accepted: images of one size",
                  file.path.string(), picture.height, picture.width, first, height, width);
    }
  }
};

// Samples are named by the paths of their files within the folder. Adds a note if little is left of
// 16 bits, and throws Error if nothing is.
SampleSet decoded(const std::vector<ImageFile>& files, const fs::path& folder,
                  const ImageShape& shape, std::vector<std::string>& notes) {
  const auto stride = static_cast<std::size_t>(shape.channels * shape.height * shape.width);
  require_memory(static_cast<double>(stride) * static_cast<double>(files.size()),
                 fmt::format("the pixels of {} images of {} x {} x {} need", files.size(),
                             shape.channels, shape.height, shape.width),
                 "fewer or smaller images need less");
  struct Decoded {
    std::string pixels;
    std::vector<std::int64_t> labels;
  };
  const auto all = std::make_shared<Decoded>();
  const auto names = std::make_shared<std::vector<std::string>>();
  std::uint32_t largest = 0;
  all->pixels.resize(stride * files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto mapped = open_image(files[i].path);
    const std::string source = files[i].path.string();
    const Picture picture = read_picture(mapped->bytes(), source);
    const bool fits = picture.height == shape.height && picture.width == shape.width &&
                      (picture.is_grey || shape.channels == 3);
    if (!fits) {
      throw_error("{}: {} x {} pixels in {}; accepted: {} x {} in {}", source, picture.height,
                  picture.width, picture.is_grey ? "grey" : "colours", shape.height, shape.width,
                  shape.channels == 1 ? "grey" : "any");
    }
    largest = std::max(
        largest, decode_picture(picture, shape.channels, source, all->pixels.data() + i * stride));
    all->labels.push_back(files[i].label);
    names->push_back(files[i].path.lexically_relative(folder).generic_string());
  }
  constexpr std::uint32_t kMostOfByte = 255;
  if (largest > 0 && largest <= kMostOfByte) {
    throw_error(
        "{}: images of 16 bits have no value above {}, and would be black, as their higher 8 bits "
        "are taken; accepted: images of 8 bits, or values up to 65535",
        files.front().path.parent_path().string(), largest);
  }
  constexpr std::uint32_t kDark = 4096;
  if (largest > 0 && largest < kDark) {
    notes.push_back(fmt::format(
        "images of 16 bits have no value above {}, so {} levels are left of the higher 8 bits",
        largest, largest / (kMostOfByte + 1) + 1));
  }
  const auto count = static_cast<std::int64_t>(files.size());
  return {.inputs = SampleRows(ElementType::u8, {shape.channels, shape.height, shape.width}, stride,
                               {{.begin = all->pixels.data(), .count = count}}, all),
          .targets = SampleRows(
              ElementType::i64, {}, sizeof(std::int64_t),
              {{.begin = reinterpret_cast<const char*>(all->labels.data()), .count = count}}, all),
          .names = names};
}

}  // namespace

DataSets read_image_folder(const fs::path& folder) {
  const Parts parts = parts_of(folder);
  if (parts.train == folder) refuse_unnamed_split(folder);
  DataSets data{.train = {},
                .inputs = InputKind::pixels,
                .noun = "images",
                .class_names = class_names_of(parts.train)};
  data.classes = std::ssize(data.class_names);
  const ImageFiles train = files_of(parts.train, data.class_names);
  const ImageFiles test = parts.test ? files_of(*parts.test, data.class_names) : ImageFiles();
  ImageShape shape;
  for (const ImageFiles* const files : {&train, &test}) {
    for (const ImageFile& file : files->images) shape.see(file);
  }
  data.train = decoded(train.images, folder, shape, data.notes);
  std::vector<std::string> unsaid;
  if (parts.test) data.test = decoded(test.images, folder, shape, unsaid);
  if (const std::int64_t others = train.others + test.others; others > 0) {
    data.notes.push_back(fmt::format("files that are not called .png, .jpg or .jpeg: {}", others));
  }
  if (parts.unlabelled) {
    data.notes.push_back(fmt::format("not tested on: {}, whose images are in no folders of classes",
                                     parts.unlabelled->filename().string()));
  }
  if (!parts.unused.empty()) {
    data.notes.push_back(fmt::format("not used: {}", fmt::join(parts.unused, ", ")));
  }
  return data;
}

SampleSet read_new_images(const fs::path& folder, const DataRecord& record, bool labels) {
  const Parts parts = parts_of(folder);
  if (labels && parts.unlabelled && !parts.test) {
    fail_folder(*parts.unlabelled, "its images are in no folders of classes");
  }
  const fs::path from =
      !labels && parts.unlabelled ? *parts.unlabelled : parts.test.value_or(parts.train);
  ImageFiles files;
  if (labels) {
    files = files_of(from, record.class_names.empty() ? class_names_of(from) : record.class_names);
  } else {
    files.add(from, 0);
    if (files.images.empty()) fail_folder(from, "it has no PNG or JPEG file");
  }
  if (record.shape.size() != 3 || (record.shape[0] != 1 && record.shape[0] != 3)) {
    throw_error(
        "{}: the model was trained on samples of shape [{}]; accepted: images for a model that was "
        "trained on images",
        folder.string(), fmt::join(record.shape, ", "));
  }
  std::vector<std::string> unsaid;
  return decoded(files.images, folder,
                 {.channels = record.shape[0], .height = record.shape[1], .width = record.shape[2]},
                 unsaid);
}

}  // namespace rubato
