#pragma once

#include <rubato/model/builtin_models.hpp>
#include <rubato/recipe/residual_options.hpp>

namespace rubato {

/// The residual network of 20 layers of He et al. 2016, for images of any size.
[[nodiscard]] ModelFactory residual_network(const ResidualOptions& options,
                                            const ImageShape& shape);

}  // namespace rubato
