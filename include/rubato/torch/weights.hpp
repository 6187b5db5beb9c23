#pragma once

#include <span>
#include <string>

#include <rubato/model/model.hpp>

namespace rubato {

/// The tensors as a dictionary from name to tensor, in the format that Python's torch.load reads:
///
///     model.load_state_dict(torch.load("weights.pt"))
[[nodiscard]] std::string pickled_weights(std::span<const NamedTensor> parameters,
                                          std::span<const NamedTensor> buffers);

}  // namespace rubato
