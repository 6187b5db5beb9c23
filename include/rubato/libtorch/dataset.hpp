#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rubato/base/state.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/loop/images.hpp>

namespace rubato {

/// A dense tensor on the CPU as an array that shares its memory. A complex tensor gets one more
/// last dimension, for real and imaginary part. Throws Error for a type outside kElementTypes, and
/// for a tensor that is not dense.
[[nodiscard]] NamedArray array_of(const NamedTensor& named);
[[nodiscard]] std::vector<NamedArray> arrays_of(std::span<const NamedTensor> tensors);

/// The reverse: a tensor that shares the memory of the array, which must outlive it.
[[nodiscard]] NamedTensor tensor_of(const NamedArray& array);
[[nodiscard]] std::vector<NamedTensor> tensors_of(std::span<const NamedArray> arrays);

/// Some samples: the inputs of the model, and the targets that the loss compares its outputs with.
/// The first dimension of every tensor counts the samples.
struct Batch {
  /// At least one tensor; further ones are masks, lengths and the like.
  Tensors inputs;
  Tensors targets;
};

/// Samples to train or to evaluate a model on, from any source.
class Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  virtual ~Dataset() = default;

  /// Number of samples, at least 1.
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// The samples of these numbers, from 0 to size() - 1, in this order; on the CPU. The same
  /// request must always give the same values: training with the same bits on any number of threads
  /// depends on it. The tensors belong to the caller, and models may write to them. Called by
  /// several threads at once. An exception ends training and is reported with its place.
  [[nodiscard]] virtual Batch batch(std::span<const std::int64_t> samples) const = 0;
  /// The samples first, first + 1, ..., first + count - 1; evaluations ask for these.
  [[nodiscard]] virtual Batch range(std::int64_t first, std::int64_t count) const;
  /// Text by which a state recognises the data: data with the same text are the same. Not called by
  /// two threads at once.
  [[nodiscard]] virtual std::string fingerprint() const = 0;
  /// Bytes of a sample, for estimates of memory.
  [[nodiscard]] virtual std::size_t sample_bytes() const { return 0; }
  /// Samples on which a model that does not fit the data is most likely to fail; they are tried
  /// before training. For classes, these are the samples with the smallest and the largest class.
  [[nodiscard]] virtual std::vector<std::int64_t> extremes() const { return {}; }
};

/// Samples in memory: sample i is inputs[i] and targets[i].
struct TensorDataset {
  at::Tensor inputs;
  at::Tensor targets;
  /// Text by which a state recognises the data, if the caller has hashed them already: samples with
  /// the same fingerprint are the same. If it is empty, it is computed from the tensors when a
  /// state is first saved or loaded.
  std::string fingerprint{};

  [[nodiscard]] std::int64_t size() const { return inputs.size(0); }
};

/// Throws Error when the two tensors do not belong together: undefined, without a sample, of
/// different first dimensions, or not on the CPU. `name` names the set ("training data").
void require_valid(const TensorDataset& dataset, std::string_view name);

/// The samples of a TensorDataset as a Dataset. Throws Error as require_valid() does.
[[nodiscard]] std::shared_ptr<const Dataset> make_dataset(TensorDataset dataset);
/// Samples in memory, each of which is a row of all these tensors. Throws Error in the same cases,
/// and if there is no input.
[[nodiscard]] std::shared_ptr<const Dataset> make_dataset(Tensors inputs, Tensors targets);

/// Images as float32 inputs [count, 1, height, width], scaled to [0, 1] and then to mean 0 and
/// deviation 1 by `statistics`, and int64 targets [count].
[[nodiscard]] TensorDataset to_tensors(const ImageSet& images, const PixelStatistics& statistics);

}  // namespace rubato
