#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "c10d/store.hpp"

namespace rubato::c10d_hosts_detail {

// What one host tells all others with an exchange.
inline constexpr std::uint64_t kPauseFlag = 1;
inline constexpr std::uint64_t kRegroupFlag = 2;

/// Hosts that are connected with each other: c10d's ProcessGroupGloo.
///
/// An exchange is a receive and a send for each other host, all begun before any is waited for,
/// from and into the caller's own memory; gloo's thread moves the bytes. Each message goes behind a
/// header that says which exchange it belongs to and how long it is. The two are also the tag of
/// the message: one that is not waited for meets no receive, so that no byte is written where it
/// does not belong.
class Group {
 public:
  struct Options {
    int rank = 0;
    /// An address or a network interface.
    std::string interface {};
    milliseconds timeout{};
    /// For all hosts to be connected; zero takes it from the timeout.
    milliseconds connection{};
  };

  /// Connects all hosts, which call it at about the same time; `names` are theirs, for messages.
  /// When it returns all are connected, and nobody needs the store. Throws Error.
  Group(const c10::intrusive_ptr<::c10d::Store>& store, std::vector<std::string> names,
        const Options& options);

  /// Hosts::exchange(). The flags of all hosts, this one's included, are combined by or: the same
  /// on all of them. Throws Error; and the same again from then on.
  [[nodiscard]] std::uint64_t exchange(std::span<const std::span<const std::byte>> out,
                                       std::span<const std::span<std::byte>> in,
                                       std::uint64_t flags);

 private:
  // What goes before each message.
  struct Header {
    std::uint64_t exchange;
    std::uint64_t bytes;
    std::uint64_t flags;
  };
  // What has been begun with a host.
  struct Pending {
    std::size_t host;
    c10::intrusive_ptr<::c10d::Work> work;
  };

  void begin(std::span<const std::span<const std::byte>> out,
             std::span<const std::span<std::byte>> in, std::uint64_t flags);
  [[nodiscard]] std::uint64_t finish(std::span<const std::span<std::byte>> in, std::uint64_t flags);
  [[nodiscard]] Pending send(std::size_t host, std::span<const std::byte> bytes, int tag);
  [[nodiscard]] Pending receive(std::size_t host, std::span<std::byte> bytes, int tag);
  void wait(const Pending& pending, Clock::time_point deadline) const;
  void check(std::size_t host, std::size_t bytes) const;
  // Closes all connections, so that the other hosts need not wait for this one, and lets go of the
  // caller's memory.
  void give_up(std::string_view why) noexcept;

  std::vector<std::string> names_;
  std::size_t rank_;
  milliseconds timeout_;
  std::uint64_t exchange_ = 0;
  // By host.
  std::vector<Header> given_;
  std::vector<Header> taken_;
  c10::intrusive_ptr<::c10d::ProcessGroupGloo> group_;
  // Behind the headers, which they point to.
  std::vector<Pending> headers_;
  std::vector<Pending> messages_;
  std::vector<Pending> sends_;
  // Why there can be no further exchange.
  std::string failure_;
};

}  // namespace rubato::c10d_hosts_detail
