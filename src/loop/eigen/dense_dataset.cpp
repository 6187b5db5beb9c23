// A DenseDataset is a pointer to Content that never changes, so copies are cheap and need no lock.
// The two named constructors check lengths and classes once, so that kernels can index without
// checks. The fingerprint hashes the type, the shape and the bytes of inputs and targets; it is
// computed when it is first asked for, under a std::once_flag, because it takes a pass over all
// numbers and several threads may ask.

#include <algorithm>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/eigen.hpp>

#include "base/core/throw_error.hpp"
#include "base/state/sha256.hpp"

namespace rubato {

template <class T>
struct DenseDataset<T>::Content {
  explicit Content(BorrowedRows<T> rows) : inputs(std::move(rows)) {}

  std::int64_t samples = 0;
  std::int64_t features = 0;
  std::int64_t outputs = 0;
  BorrowedRows<T> inputs;
  // One of these is empty.
  std::vector<std::int64_t> classes;
  std::vector<T> targets;

  mutable std::once_flag hashed;
  mutable std::string fingerprint;
};

namespace {

template <class Vector>
std::int64_t length_of(const Vector& values) {
  return static_cast<std::int64_t>(values.size());
}

// Returns the number of values in each of `samples` rows.
std::int64_t length_of_rows(std::int64_t values, std::int64_t samples) {
  if (samples == 0) throw Error("data: no sample; accepted: at least one");
  if (values == 0 || values % samples != 0) {
    throw_error(
        "data: {} input values for {} samples; accepted: rows of equal length, {}, {}, {}, ... "
        "values",
        values, samples, samples, 2 * samples, 3 * samples);
  }
  return values / samples;
}

template <class T>
std::string hash_of(const DenseDataset<T>& dataset) {
  Sha256 sha;
  const auto add = [&sha](std::string_view type, std::int64_t columns, const auto values) {
    sha.add(fmt::format("{} {}x{}\n", type, length_of(values) / columns, columns));
    sha.add(values.data(), values.size_bytes());
  };
  const std::string_view type = name_of(element_type_of<T>());
  add(type, dataset.features(), dataset.inputs());
  if (dataset.is_classified()) {
    sha.add(fmt::format("{} classes\n", dataset.outputs()));
    add(name_of(ElementType::i64), 1, dataset.classes());
  } else {
    add(type, dataset.outputs(), dataset.targets());
  }
  return sha.hex();
}

}  // namespace

template <class T>
DenseDataset<T>::DenseDataset(std::shared_ptr<const Content> content)
    : content_(std::move(content)) {}

namespace {

template <class T>
BorrowedRows<T> rows_of(std::vector<T> values) {
  const auto owner = std::make_shared<const std::vector<T>>(std::move(values));
  return BorrowedRows<T>(*owner, owner);
}

}  // namespace

template <class T>
DenseDataset<T> DenseDataset<T>::classified(std::vector<T> inputs,
                                            std::vector<std::int64_t> classes,
                                            std::int64_t class_count) {
  return classified(rows_of(std::move(inputs)), std::move(classes), class_count);
}

template <class T>
DenseDataset<T> DenseDataset<T>::with_targets(std::vector<T> inputs, std::vector<T> targets,
                                              std::int64_t outputs) {
  return with_targets(rows_of(std::move(inputs)), std::move(targets), outputs);
}

template <class T>
DenseDataset<T> DenseDataset<T>::classified(BorrowedRows<T> inputs,
                                            std::vector<std::int64_t> classes,
                                            std::int64_t class_count) {
  if (class_count < 1) throw_error("data: {} classes; accepted: at least 1", class_count);
  const std::int64_t features = length_of_rows(length_of(inputs.values()), length_of(classes));
  const auto wrong = std::find_if(classes.begin(), classes.end(), [&](std::int64_t value) {
    return value < 0 || value >= class_count;
  });
  if (wrong != classes.end()) {
    throw_error("data: sample {} is of class {}; accepted: 0 to {}", wrong - classes.begin() + 1,
                *wrong, class_count - 1);
  }
  auto content = std::make_shared<Content>(std::move(inputs));
  content->samples = length_of(classes);
  content->features = features;
  content->outputs = class_count;
  content->classes = std::move(classes);
  return DenseDataset(std::move(content));
}

template <class T>
DenseDataset<T> DenseDataset<T>::with_targets(BorrowedRows<T> inputs, std::vector<T> targets,
                                              std::int64_t outputs) {
  if (outputs < 1 || length_of(targets) % outputs != 0) {
    throw_error(
        "data: {} targets, {} for each sample; accepted: at least 1 for each, and a multiple of "
        "that in all",
        targets.size(), outputs);
  }
  const std::int64_t samples = length_of(targets) / outputs;
  const std::int64_t features = length_of_rows(length_of(inputs.values()), samples);
  auto content = std::make_shared<Content>(std::move(inputs));
  content->samples = samples;
  content->features = features;
  content->outputs = outputs;
  content->targets = std::move(targets);
  return DenseDataset(std::move(content));
}

template <class T>
std::int64_t DenseDataset<T>::samples() const {
  return content_->samples;
}
template <class T>
std::int64_t DenseDataset<T>::features() const {
  return content_->features;
}
template <class T>
std::int64_t DenseDataset<T>::outputs() const {
  return content_->outputs;
}
template <class T>
bool DenseDataset<T>::is_classified() const {
  return !content_->classes.empty();
}
template <class T>
std::span<const T> DenseDataset<T>::inputs() const {
  return content_->inputs.values();
}
template <class T>
std::span<const std::int64_t> DenseDataset<T>::classes() const {
  return content_->classes;
}
template <class T>
std::span<const T> DenseDataset<T>::targets() const {
  return content_->targets;
}

template <class T>
const std::string& DenseDataset<T>::fingerprint() const {
  std::call_once(content_->hashed, [this] { content_->fingerprint = hash_of(*this); });
  return content_->fingerprint;
}

template class DenseDataset<float>;
template class DenseDataset<double>;

template <class T>
DenseDataset<T> to_rows(const ImageSet& images, const PixelStatistics& statistics,
                        std::int64_t class_count) {
  const auto normalised = normalised_pixels(statistics);
  std::vector<T> inputs(images.pixels.size());
  std::transform(images.pixels.begin(), images.pixels.end(), inputs.begin(),
                 [&](std::uint8_t pixel) { return static_cast<T>(normalised[pixel]); });
  return DenseDataset<T>::classified(std::move(inputs),
                                     {images.labels.begin(), images.labels.end()}, class_count);
}

template DenseDataset<float> to_rows(const ImageSet&, const PixelStatistics&, std::int64_t);
template DenseDataset<double> to_rows(const ImageSet&, const PixelStatistics&, std::int64_t);

}  // namespace rubato
