#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/hosts/c10d_hosts.hpp>
#include <rubato/loop/hosts.hpp>

#include "hosts/rendezvous/protocol.hpp"

namespace rubato::hosts_detail {

/// Version of what hosts say to each other, and in which order, before they are connected. Raised
/// with every change.
inline constexpr int kProtocol = 5;

/// A host introduces itself with this before it takes part.
struct Greeting {
  int protocol = kProtocol;
  int count = 1;
  double weight = 1;
  /// Name of its machine, and an id that no other machine has.
  std::string machine{};
  std::string machine_id{};
  /// Address or network interface at which it can be reached.
  std::string interface {};
  /// "HOST:PORT" at which others may test whether they reach it; empty if they do not.
  std::string probe_address{};
  /// Random number in hexadecimal: no two greetings are the same.
  std::string nonce{};
  std::vector<NamedText> equal{};
  /// Steps of the checkpoint that it brings (ElasticOptions::brings).
  std::optional<std::int64_t> brings{};

  friend bool operator==(const Greeting&, const Greeting&) = default;
};

/// Largest number of bytes of a greeting.
inline constexpr std::size_t kMaxGreetingBytes = std::size_t{1} << 18U;

/// The greeting as JSON. Throws Error if it has more bytes than kMaxGreetingBytes.
[[nodiscard]] std::string greeting_text(const Greeting& greeting);
/// Parses the greeting of host `rank`. Throws Error if the text is not a greeting of protocol
/// kProtocol.
[[nodiscard]] Greeting parse_greeting(std::string_view text, int rank);

/// The greeting of this process at a meeting, with a new nonce.
[[nodiscard]] Greeting greeting_of(const C10dOptions& meeting);

/// Proves that the host knows `token`, and has read the greetings of all hosts, in their order: an
/// HMAC-SHA256 in hexadecimal. It differs from host to host and, as the greetings do, from run to
/// run.
[[nodiscard]] std::string proof_of(std::string_view token, int rank,
                                   std::span<const std::string> greetings);

/// Throws Error if `other`, from host `rank`, expects another number of hosts.
void require_same_count(const Greeting& own, const Greeting& other, int rank);

/// Throws Error unless the hosts of these greetings, in the order of ranks, can train together:
/// with the same texts, and each where the others reach it. `rank` is this host's.
void require_compatible(std::span<const Greeting> greetings, int rank);

/// Why a host that has said `other` cannot train with one that has said `own`, as in "another --lr
/// (0.5, here 0.01)"; empty if it can.
[[nodiscard]] std::string objection_to(const Greeting& own, const Greeting& other);

/// True if the name of this address or interface says that no other machine reaches it.
[[nodiscard]] bool is_loopback(std::string_view interface);

/// Names by rank: "host 2", or "host 2 (node17)" if the hosts are on several machines.
[[nodiscard]] std::vector<std::string> names_of(std::span<const Greeting> greetings);
/// The same names with these numbers instead of ranks.
[[nodiscard]] std::vector<std::string> names_of(std::span<const Greeting> greetings,
                                                std::span<const std::int64_t> numbers);

}  // namespace rubato::hosts_detail
