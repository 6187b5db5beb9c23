#pragma once

#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace rubato::test {

/// A network of its own for a host, at the end of a cable that can be pulled.
class NetworkOfItsOwn {
 public:
  NetworkOfItsOwn() {
    is_there_ =
        run(fmt::format("ip netns add {0} && ip link add {0} type veth peer name {0}b && "
                        "ip link set {0}b netns {0} && ip addr add {1}.1/24 dev {0} && "
                        "ip link set {0} up && ip -n {0} addr add {1}.2/24 dev {0}b && "
                        "ip -n {0} link set {0}b up && ip -n {0} link set lo up",
                        name_, net_));
  }
  ~NetworkOfItsOwn() { run(fmt::format("ip link del {0}; ip netns del {0}", name_)); }
  NetworkOfItsOwn(const NetworkOfItsOwn&) = delete;
  NetworkOfItsOwn& operator=(const NetworkOfItsOwn&) = delete;

  [[nodiscard]] bool is_there() const { return is_there_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string here() const { return net_ + ".1"; }
  [[nodiscard]] std::string there() const { return net_ + ".2"; }
  void set_link(const char* state) const {
    EXPECT_TRUE(run(fmt::format("ip link set {} {}", name_, state)));
  }

 private:
  static bool run(const std::string& command) {
    return std::system(fmt::format("({}) 2>/dev/null", command).c_str()) == 0;
  }

  std::string name_ = fmt::format("rt{}", getpid());
  std::string net_ = fmt::format("10.{}.{}", 64 + getpid() / 256 % 64, getpid() % 256);
  bool is_there_ = false;
};

}  // namespace rubato::test
