#pragma once

#include <memory>

#include "peer_connector.hpp"

namespace gloo::transport {
class Device;
}  // namespace gloo::transport

namespace rubato::c10d_hosts_detail {

/// A device of gloo for one group, whose pairs are connected by a PeerConnector: gloo listens at no
/// port that others reach, and moves bytes only on connections that both ends have authenticated.
/// An error on gloo's thread ends a pair, not the process.
[[nodiscard]] std::shared_ptr<gloo::transport::Device> gloo_device(
    const PeerConnector::Options& options);

}  // namespace rubato::c10d_hosts_detail
