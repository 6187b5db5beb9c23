#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <string_view>

#include <ATen/core/Tensor.h>

#include <rubato/base/state.hpp>

namespace rubato {

/// A sink for what libtorch writes. Its writer is not to be thrown through, as its destructor goes
/// on writing: what the sink throws is kept for rethrow(), and nothing more is given to it.
class ArchiveSink {
 public:
  /// `sink` must outlive it.
  explicit ArchiveSink(const ByteSink& sink) : sink_(sink) {}
  ArchiveSink(const ArchiveSink&) = delete;
  ArchiveSink& operator=(const ArchiveSink&) = delete;
  ~ArchiveSink() = default;

  /// For the writer; this must outlive it.
  [[nodiscard]] std::function<std::size_t(const void* bytes, std::size_t size)> function() {
    return [this](const void* bytes, std::size_t size) {
      give({static_cast<const char*>(bytes), size});
      return size;
    };
  }
  /// Once the archive is written.
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

/// The values of a tensor in a storage that holds nothing else, as libtorch writes whole storages:
/// a view of a dense tensor, which must outlive it, and a copy of any other.
[[nodiscard]] at::Tensor with_its_own_bytes(const at::Tensor& tensor);

}  // namespace rubato
