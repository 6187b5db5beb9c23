#pragma once

#include <memory>

#include "peer_connector.hpp"

namespace gloo::transport {
class Device;
}  // namespace gloo::transport

namespace rubato::c10d_hosts_detail {

/// A device of gloo's for one group, whose pairs are connected by a PeerConnector: gloo listens at
/// no port that others reach, and moves bytes on connections that both ends have proved. Whatever
/// goes wrong on gloo's thread is the end of a pair, and not of the process.
[[nodiscard]] std::shared_ptr<gloo::transport::Device> gloo_device(
    const PeerConnector::Options& options);

}  // namespace rubato::c10d_hosts_detail
