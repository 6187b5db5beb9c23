#pragma once

#include <memory>

#include <rubato/run/workload.hpp>
#include <rubato/torch/torch_options.hpp>

namespace rubato {

/// What libtorch computes (Engine::libtorch): models of TorchScript, and all built-in ones but
/// quadratic. Throws Error as LoadWorkload does, and for a model that libtorch does not compute.
[[nodiscard]] std::shared_ptr<const Workload> torch_workload(const RunConfiguration& configuration);

/// The library's options for those of a configuration.
[[nodiscard]] TorchOptions torch_options(const RunConfiguration& configuration);

}  // namespace rubato
