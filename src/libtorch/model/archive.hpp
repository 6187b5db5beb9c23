#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <string_view>

#include <ATen/core/Tensor.h>

#include <rubato/base/state.hpp>

namespace rubato {

/// A sink for libtorch's archive writers. No exception may pass through a writer, because its
/// destructor continues to write: the sink's exception is kept for rethrow(), and the sink gets
/// nothing more.
class ArchiveSink {
 public:
  /// `sink` must outlive this object.
  explicit ArchiveSink(const ByteSink& sink) : sink_(sink) {}
  ArchiveSink(const ArchiveSink&) = delete;
  ArchiveSink& operator=(const ArchiveSink&) = delete;
  ~ArchiveSink() = default;

  /// The function to give to the writer, which this object must outlive.
  [[nodiscard]] std::function<std::size_t(const void* bytes, std::size_t size)> function() {
    return [this](const void* bytes, std::size_t size) {
      give({static_cast<const char*>(bytes), size});
      return size;
    };
  }
  /// Rethrows the sink's exception, if any; called once the archive is written.
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  void give(std::string_view bytes) noexcept {
    if (thrown_) return;
    try {
      sink_(bytes);
    } catch (...) {
      thrown_ = std::current_exception();
    }
  }

  const ByteSink& sink_;
  std::exception_ptr thrown_;
};

/// The values of a tensor in a storage that holds nothing else, because libtorch writes whole
/// storages: a view of a dense tensor, which must outlive it, and a copy of any other.
[[nodiscard]] at::Tensor with_its_own_bytes(const at::Tensor& tensor);

}  // namespace rubato
