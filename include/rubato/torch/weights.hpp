#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/core/byte_sink.hpp>
#include <rubato/model/model.hpp>

namespace rubato {

/// The tensors as a dictionary from name to tensor, in the format that Python's torch.load reads:
///
///     model.load_state_dict(torch.load("weights.pt"))
[[nodiscard]] std::string pickled_weights(std::span<const NamedTensor> parameters,
                                          std::span<const NamedTensor> buffers);
/// Gives the same bytes to a sink. Dense tensors are not copied.
void stream_pickled_weights(std::span<const NamedTensor> parameters,
                            std::span<const NamedTensor> buffers, const ByteSink& sink);

/// The tensors in the bytes of a file: a state_dict that Python's torch.save() wrote, an
/// OrderedDict or a dict, or what pickled_weights() or state_bytes() did. `source` stands for the
/// file in messages.
///
/// Nothing in the file is called, and nothing that it says is believed: memory is taken in
/// proportion to its size, and a tensor that reaches beyond it is an error. Throws Error for what
/// is damaged, and for what is no state_dict.
[[nodiscard]] std::vector<NamedTensor> read_weights(std::string_view bytes,
                                                    const std::string& source);

/// Gives all parameters and buffers of the model the values of the weights of their names. Throws
/// Error where names or shapes are not those of the model, with all that differs; the model is then
/// as it was.
void load_weights(const Model& model, std::span<const NamedTensor> weights,
                  const std::string& source);

}  // namespace rubato
