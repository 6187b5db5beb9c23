#pragma once

#include <span>
#include <string>

#include <rubato/model/model.hpp>

namespace rubato {

/// The SHA-256, in hexadecimal, of the values of `tensors`: their bytes as this machine holds them,
/// each tensor contiguous, in the order given. The fingerprint of a training result.
[[nodiscard]] std::string sha256_of(std::span<const NamedTensor> tensors);

/// The tensors as a dictionary from name to tensor, in the format that Python's torch.load reads:
///
///     model.load_state_dict(torch.load("weights.pt"))
[[nodiscard]] std::string pickled_weights(std::span<const NamedTensor> parameters,
                                          std::span<const NamedTensor> buffers);

}  // namespace rubato
