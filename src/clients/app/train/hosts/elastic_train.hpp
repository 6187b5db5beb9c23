#pragma once

#include <functional>
#include <memory>

#include <rubato/hosts/c10d_hosts.hpp>
#include <rubato/runs/workload.hpp>

#include "clients/app/line/exit_code.hpp"
#include "clients/app/train/train_arguments.hpp"

namespace rubato::app {

/// Comes to the hosts of a run: elastic_hosts(), where `options` leave open what `hosts` say.
/// Throws Error.
using JoinHosts = std::function<std::shared_ptr<ElasticHosts>(const HostArguments& hosts,
                                                              ElasticOptions options)>;

/// train() on hosts that come and go. The first of them shows how it goes on and writes the run
/// folder; when it is lost, the next one does, in the same folder where it has it. The others keep
/// what they need for that in a folder of their own, which goes with them.
[[nodiscard]] ExitCode train_on_elastic_hosts(const TrainArguments& arguments,
                                              const LoadWorkload& load, const JoinHosts& join);

}  // namespace rubato::app
