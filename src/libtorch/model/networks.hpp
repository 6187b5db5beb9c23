#pragma once

#include <string_view>

#include <rubato/libtorch/model.hpp>

#include "loop/recipe/models.hpp"

namespace rubato {

/// Gives the parameters of `model` new values, drawn from libtorch's generator in the order of
/// their declaration (InitializerOptions says which parameters get what).
void initialize(const Model& model, const InitializerOptions& options);

/// The built-in model of that text for some data. Throws Error as builtin_model() does, and for
/// data that it does not take.
[[nodiscard]] ModelFactory builtin_model_for(std::string_view text, const DataShape& data);

/// The residual network of 20 layers of He et al. 2016, for images of any size.
[[nodiscard]] ModelFactory residual_network(const ResidualOptions& options, const DataShape& data);

/// A transformer encoder: of the rows of an image, each of which is a token that sees all others,
/// or of token ids. No token id sees later ones, so that the class of a token may be the next
/// token.
[[nodiscard]] ModelFactory transformer(const TransformerOptions& options, const DataShape& data);

}  // namespace rubato
