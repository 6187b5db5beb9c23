#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "store.hpp"

namespace rubato::hosts_detail {

// Flags that one host tells all others with an exchange.
inline constexpr std::uint64_t kPauseFlag = 1;
inline constexpr std::uint64_t kRegroupFlag = 2;
inline constexpr std::uint64_t kLeaveFlag = 4;
inline constexpr std::uint64_t kSaveFlag = 8;

/// Result of an exchange: the flags that the hosts have sent each other.
struct GroupFlags {
  /// The flags of all hosts, combined by or, and the number of hosts that leave (kLeaveFlag): the
  /// same on all hosts.
  std::uint64_t flags = 0;
  std::size_t leaving = 0;
  /// This host is one of those that leave.
  bool leaves = false;
};

/// A host's requests to all others: the part of Hosts that is the same however hosts meet.
template <class Interface>
class RequestingHosts : public Interface {
 public:
  void ask_to_pause() final { flags_to_send_ |= kPauseFlag; }
  [[nodiscard]] bool pause_asked() const final { return pause_asked_; }
  void ask_to_save() final { flags_to_send_ |= kSaveFlag; }
  [[nodiscard]] bool take_save_request() final { return std::exchange(save_asked_, false); }

 protected:
  void note_flags(const GroupFlags& received) {
    pause_asked_ = pause_asked_ || (received.flags & kPauseFlag) != 0;
    if ((received.flags & kSaveFlag) == 0) return;
    save_asked_ = true;
    flags_to_send_ &= ~kSaveFlag;
  }

  // Flags of this host that the others do not know yet.
  std::atomic<std::uint64_t> flags_to_send_ = 0;
  bool pause_asked_ = false;

 private:
  bool save_asked_ = false;
};

/// Message of any further exchange after Hosts::abandon().
inline constexpr std::string_view kAbandoned = "this host has left an exchange";

/// Hosts that are connected with each other: c10d's ProcessGroupGloo.
///
/// An exchange is a receive and a send for each other host, from and into the caller's own memory;
/// gloo's thread moves the bytes. It sends a message once it has heard that the other host waits
/// for it: a message whose receive is posted long before it is sent takes one latency of the
/// network, and otherwise two.
///
/// Each message follows a header that says which exchange it belongs to and how long it is. The two
/// are also the tag of the message: an unexpected message matches no receive, so that no byte is
/// written where it does not belong.
class Group {
 public:
  struct Options {
    int rank = 0;
    /// Address or network interface to listen at.
    std::string interface {};
    /// Token that each two hosts prove to each other before they are connected.
    std::string token{};
    milliseconds timeout{};
    /// Time limit for all hosts to be connected; zero means the timeout.
    milliseconds connection{};
    /// PeerConnector::Options::look.
    std::function<void()> look{};
  };

  /// Connects all hosts, which call it at about the same time; `names` are theirs, for messages.
  /// When it returns all are connected, and the store is no longer needed. Throws HostLost, and
  /// Error if this host cannot listen.
  Group(const c10::intrusive_ptr<::c10d::Store>& store, std::vector<std::string> names,
        const Options& options);

  // The functions below are those of Hosts. They throw Error, and throw it again in every later
  // call.

  void post_receives(std::span<const std::span<std::byte>> in);
  void post_sends(std::span<const std::span<const std::byte>> out, std::uint64_t flags);
  /// Returns the flags of all hosts, this one included.
  [[nodiscard]] GroupFlags wait();
  /// Closes all connections, so that the other hosts need not wait for this one, and releases the
  /// caller's memory.
  void abandon(std::string_view why) noexcept;

  /// Calls post_receives(), post_sends() and wait(); no other exchange may be under way.
  [[nodiscard]] GroupFlags exchange(std::span<const std::span<const std::byte>> out,
                                    std::span<const std::span<std::byte>> in, std::uint64_t flags);

 private:
  // Header that is sent before each message.
  struct Header {
    std::uint64_t exchange;
    std::uint64_t bytes;
    std::uint64_t flags;
  };
  // A send or receive under way with a host.
  struct Pending {
    std::size_t host;
    c10::intrusive_ptr<::c10d::Work> work;
  };
  // An exchange that is under way; the vectors are indexed by host.
  struct Round {
    std::uint64_t number;
    std::vector<std::span<std::byte>> in;
    // Flags of this host, once they are sent.
    std::uint64_t flags = 0;
    std::vector<Header> sent;
    std::vector<Header> received;
    // The works come after the headers, which they point to.
    std::vector<Pending> headers{};
    std::vector<Pending> messages{};
    std::vector<Pending> sends{};
  };

  // Runs `call`; after an exception nothing is under way.
  template <class Call>
  auto attempt(const Call& call);
  void receive_all(Round& round);
  void send_all(Round& round, std::span<const std::span<const std::byte>> out);
  [[nodiscard]] GroupFlags finish(const Round& round) const;
  [[nodiscard]] Pending send(std::size_t host, std::span<const std::byte> bytes, int tag);
  [[nodiscard]] Pending receive(std::size_t host, std::span<std::byte> bytes, int tag);
  void wait(const Pending& pending, Clock::time_point deadline) const;
  void check(const Round& round, std::size_t host) const;

  std::vector<std::string> names_;
  std::size_t rank_;
  milliseconds timeout_;
  std::uint64_t posted_ = 0;
  c10::intrusive_ptr<::c10d::ProcessGroupGloo> group_;
  // Rounds in order; the first `sent_` of them are sent. They stand behind the group because they
  // hold its works.
  std::deque<Round> rounds_;
  std::size_t sent_ = 0;
  // Why there can be no further exchange.
  std::string failure_;
};

}  // namespace rubato::hosts_detail
