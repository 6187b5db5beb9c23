#pragma once

#include <cstdint>
#include <string_view>

namespace rubato {

class Spec;

/// A transformer encoder (Vaswani et al. 2017), with the normalisation before each part.
struct TransformerOptions {
  /// Encoder layers, at least 1.
  std::int64_t layers = 2;
  /// Of the attention, at least 1.
  std::int64_t heads = 4;
  /// Features of a token: a multiple of the heads.
  std::int64_t dim = 64;
  /// Features between the two linear layers behind the attention, at least 1.
  std::int64_t hidden = 128;
  /// Share of the features that training leaves out behind the attention and behind the linear
  /// layers, from 0 to below 1.
  double dropout = 0;
};

/// "transformer", or "transformer:layers=4,heads=8,dim=128,hidden=512,dropout=0.1". Throws Error.
[[nodiscard]] TransformerOptions parse_transformer(std::string_view text);
/// The arguments alone, whatever the name is, and without Spec::finish().
[[nodiscard]] TransformerOptions read_transformer(Spec& spec);

/// Weights of the encoder for sequences of `tokens`, each of which comes in `inputs` numbers.
[[nodiscard]] std::int64_t transformer_parameters(const TransformerOptions& options,
                                                  std::int64_t tokens, std::int64_t inputs,
                                                  std::int64_t classes);
/// For sequences of `tokens` ids, from 0 to below `vocabulary`.
[[nodiscard]] std::int64_t sequence_transformer_parameters(const TransformerOptions& options,
                                                           std::int64_t tokens,
                                                           std::int64_t vocabulary,
                                                           std::int64_t classes);

}  // namespace rubato
