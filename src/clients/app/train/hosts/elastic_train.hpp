#pragma once

#include <functional>
#include <memory>

#include <rubato/hosts/c10d_hosts.hpp>
#include <rubato/runs/workload.hpp>

#include "clients/app/line/exit_code.hpp"
#include "clients/app/train/train_arguments.hpp"

namespace rubato::app {

/// Joins the hosts of a run: calls elastic_hosts() with `options`, completed from `hosts`. Throws
/// Error.
using JoinHosts = std::function<std::shared_ptr<ElasticHosts>(const HostArguments& hosts,
                                                              ElasticOptions options)>;

/// train() on elastic hosts. The first host shows the progress and writes the run folder. If it is
/// lost, the next host takes over, in the same folder if it can reach it. The others keep the
/// necessary files in a temporary folder of their own, which is removed with them.
[[nodiscard]] ExitCode train_on_elastic_hosts(const TrainArguments& arguments,
                                              const LoadWorkload& load, const JoinHosts& join);

}  // namespace rubato::app
