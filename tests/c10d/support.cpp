#include "c10d/support.hpp"

#include <span>
#include <thread>

#include <gtest/gtest.h>

#include "support/error_of.hpp"

namespace rubato::test {

C10dOptions options_at(const RendezvousServer& server, const std::string& run, int rank,
                       int count) {
  return {.count = count,
          .rank = rank,
          .port = server.port(),
          .run = run,
          .timeout = std::chrono::minutes(1)};
}

std::vector<std::string> errors_of_hosts(const std::vector<C10dOptions>& hosts,
                                         const std::function<void(const C10dOptions&)>& host) {
  std::vector<std::string> errors(hosts.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    threads.emplace_back([&, i] { errors[i] = error_of([&] { host(hosts[i]); }); });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

std::vector<std::string> errors_of_meeting(const std::vector<C10dOptions>& hosts) {
  return errors_of_hosts(
      hosts, [](const C10dOptions& options) { static_cast<void>(c10d_hosts(options)); });
}

std::vector<std::vector<std::byte>> exchanged(Hosts& hosts, std::size_t bytes, std::byte value) {
  const auto count = static_cast<std::size_t>(hosts.count());
  const std::vector<std::byte> own(bytes, value);
  std::vector<std::vector<std::byte>> taken(count, std::vector<std::byte>(bytes));
  const std::vector<std::span<const std::byte>> out(count, own);
  const std::vector<std::span<std::byte>> in(taken.begin(), taken.end());
  hosts.exchange(out, in);
  return taken;
}

}  // namespace rubato::test
