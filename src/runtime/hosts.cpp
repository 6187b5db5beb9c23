#include <rubato/runtime/hosts.hpp>

namespace rubato {

std::vector<double> Hosts::weights() const {
  return std::vector<double>(static_cast<std::size_t>(count()), 1.0);
}

}  // namespace rubato
