#include <cstdint>
#include <map>
#include <string>

#include <gmock/gmock.h>

#include <rubato/steps/batch_policy.hpp>

#include "runs/config/chosen_parts.hpp"

namespace rubato {
namespace {

// What goodput has learned of steps on one core and on two.
std::map<std::string, double> learned_on(const std::string& cluster) {
  RunConfiguration run;
  run.clock = Clock::modelled;
  run.cluster = cluster;
  run.batch = "goodput:max=1024";
  const auto policy = batch_policy_of(run);
  const auto observe = [&](std::int64_t batch, std::int64_t cores, double seconds) {
    policy->observe(
        {.step = {.batch_size = batch, .cores = cores}, .after = {}, .seconds = seconds});
  };
  // A second for each minibatch of 32, and one for two cores to exchange.
  observe(64, 1, 2);
  observe(128, 1, 4);
  observe(128, 2, 3);
  std::map<std::string, double> inputs;
  for (const NamedNumber& input :
       policy->decide({.batch_size = 128, .cores = 2}, SourceProgress()).inputs) {
    inputs[input.name] = input.value;
  }
  return inputs;
}

// Two cores of a host need no network. Hosts that train together do, however few cores they have.
TEST(BatchPolicyOfAConfiguration, KnowsWhichCoresNeedANetwork) {
  for (const char* cluster : {"", "cores-per-host=2", "cores-per-host=8"}) {
    const std::map<std::string, double> of_host = learned_on(cluster);
    EXPECT_GT(of_host.at("host_base"), 0.5) << cluster;
    EXPECT_EQ(of_host.at("network_base"), 0) << cluster;
  }
  for (const char* cluster : {"hosts=2", "hosts=3", "cores-per-host=1"}) {
    const std::map<std::string, double> of_network = learned_on(cluster);
    EXPECT_EQ(of_network.at("host_base"), 0) << cluster;
    EXPECT_GT(of_network.at("network_base"), 0.5) << cluster;
  }
}

}  // namespace
}  // namespace rubato
