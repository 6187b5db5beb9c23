#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/loop/hosts.hpp>

#include "hosts/rendezvous/wire/signature.hpp"

namespace rubato::c10d_hosts_detail {

/// What hosts say to each other, and in which order, before they are connected. Raised with every
/// change.
inline constexpr int kProtocol = 5;

/// What a host says of itself before it takes part.
struct Greeting {
  int protocol = kProtocol;
  int count = 1;
  double weight = 1;
  /// Of its machine: its name, and what tells it from all other machines.
  std::string machine{};
  std::string machine_id{};
  /// Where it can be reached.
  std::string interface {};
  /// Where others may try whether they reach it, as "HOST:PORT"; empty where they do not.
  std::string door{};
  /// Random, in hexadecimal: no two greetings are the same.
  std::string nonce{};
  std::vector<NamedText> equal{};
  /// The steps of the checkpoint that it brings (ElasticOptions::brings).
  std::optional<std::int64_t> brings{};

  friend bool operator==(const Greeting&, const Greeting&) = default;
};

/// No greeting has more bytes.
inline constexpr std::size_t kMaxGreetingBytes = std::size_t{1} << 18U;

/// As JSON. Throws Error where it has more bytes than kMaxGreetingBytes.
[[nodiscard]] std::string greeting_text(const Greeting& greeting);
/// Of whatever host `rank` has left: throws Error where that is no greeting of protocol kProtocol.
[[nodiscard]] Greeting parse_greeting(std::string_view text, int rank);

/// Of the machine that this process runs on, with a new nonce.
[[nodiscard]] Greeting greeting_from_here();

/// That who gives it knows `token`, and has read the greetings of all hosts, in their order: an
/// HMAC-SHA256 in hexadecimal. It differs from host to host and, as the greetings do, from run to
/// run.
[[nodiscard]] std::string proof_of(std::string_view token, int rank,
                                   std::span<const std::string> greetings);

/// Throws Error where `other`, of host `rank`, is one of another number of hosts.
void require_same_count(const Greeting& own, const Greeting& other, int rank);

/// Throws Error unless these greetings, in the order of hosts, are of hosts that can train
/// together: with the same texts, and each where the others reach it. `rank` is this host's.
void require_compatible(std::span<const Greeting> greetings, int rank);

/// Why a host that has said `other` cannot train with one that has said `own`, as in "another --lr
/// (0.5, here 0.01)"; empty where it can.
[[nodiscard]] std::string objection_to(const Greeting& own, const Greeting& other);

/// Whether that is, by what it is called, an address or an interface that no other machine reaches.
[[nodiscard]] bool is_loopback(std::string_view interface);

/// "host 2", or where the hosts are on several machines "host 2 (node17)": by rank.
[[nodiscard]] std::vector<std::string> names_of(std::span<const Greeting> greetings);
/// By these numbers of theirs.
[[nodiscard]] std::vector<std::string> names_of(std::span<const Greeting> greetings,
                                                std::span<const std::int64_t> numbers);

}  // namespace rubato::c10d_hosts_detail
