#pragma once

#include <memory>

#include <rubato/run/workload.hpp>

namespace rubato {

/// The models that Eigen computes (Engine::eigen): softmax, mlp and quadratic. Throws Error as
/// LoadWorkload does, and for any other model.
[[nodiscard]] std::shared_ptr<const Workload> dense_workload(const RunConfiguration& configuration);

}  // namespace rubato
