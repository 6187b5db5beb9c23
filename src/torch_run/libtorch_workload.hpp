#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <rubato/model/model.hpp>
#include <rubato/run/workload.hpp>

namespace rubato {

/// What all workloads of libtorch have in common.
class LibtorchWorkload : public Workload {
 public:
  [[nodiscard]] EngineFacts engine() const final;
  [[nodiscard]] std::string warning() const final;
  [[nodiscard]] std::string_view weights_suffix() const final { return "pt"; }
  [[nodiscard]] std::string weights(std::span<const NamedArray> parameters,
                                    std::span<const NamedArray> buffers) const final;
};

/// The kernels in use, of each library.
[[nodiscard]] EngineFacts::Facts kernel_facts();

/// Bytes of the gradient of such models, which cores exchange in the type of the parameters. Makes
/// one of them.
[[nodiscard]] std::int64_t gradient_bytes_of(const ModelFactory& model);

}  // namespace rubato
