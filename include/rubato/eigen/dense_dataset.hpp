#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <rubato/data/image_set.hpp>

namespace rubato {

/// Samples as rows of numbers, and for each of them a class or some real numbers.
///
/// A value: copies share the numbers, which never change. May be read by any number of threads.
///
/// T is float or double.
template <class T>
class DenseDataset {
 public:
  /// The rows, all of one length, one after the other, and the class of each, from 0 to
  /// `class_count` - 1. Throws Error for lengths that do not fit together, for no sample and for a
  /// class out of its range.
  [[nodiscard]] static DenseDataset classified(std::vector<T> inputs,
                                               std::vector<std::int64_t> classes,
                                               std::int64_t class_count);
  /// The rows, and `outputs` numbers for each of them, row by row as well. Throws Error for lengths
  /// that do not fit together and for no sample.
  [[nodiscard]] static DenseDataset with_targets(std::vector<T> inputs, std::vector<T> targets,
                                                 std::int64_t outputs = 1);

  [[nodiscard]] std::int64_t samples() const;
  /// Numbers in a row.
  [[nodiscard]] std::int64_t features() const;
  /// Classes, or real numbers for each sample.
  [[nodiscard]] std::int64_t outputs() const;
  [[nodiscard]] bool is_classified() const;

  /// [samples, features].
  [[nodiscard]] std::span<const T> inputs() const;
  /// One for each sample; empty unless is_classified().
  [[nodiscard]] std::span<const std::int64_t> classes() const;
  /// [samples, outputs]; empty if is_classified().
  [[nodiscard]] std::span<const T> targets() const;

  /// The SHA-256 of all of it, computed when it is first asked for.
  [[nodiscard]] const std::string& fingerprint() const;

 private:
  struct Content;
  explicit DenseDataset(std::shared_ptr<const Content> content);

  std::shared_ptr<const Content> content_;
};

extern template class DenseDataset<float>;
extern template class DenseDataset<double>;

/// One row for each image: its pixels, scaled to [0, 1], less the mean and divided by the
/// deviation. They are computed in double and rounded to float, whatever T is, so that they are the
/// values of the tensors that to_tensors() makes (rubato/torch/dataset.hpp).
///
/// T is float or double.
template <class T>
[[nodiscard]] DenseDataset<T> to_rows(const ImageSet& images, const PixelStatistics& statistics,
                                      std::int64_t class_count = 10);

extern template DenseDataset<float> to_rows(const ImageSet&, const PixelStatistics&, std::int64_t);
extern template DenseDataset<double> to_rows(const ImageSet&, const PixelStatistics&, std::int64_t);

}  // namespace rubato
