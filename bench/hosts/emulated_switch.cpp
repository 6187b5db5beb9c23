// An Ethernet switch in user space, which connects several hosts on one machine where the kernel
// has no netem.
//
//   emulated_switch --rate BYTES_PER_SECOND --delay SECONDS [--queue BYTES] DEVICE...
//
// Makes a TAP device for each name, says "ready", and forwards frames between them until its stdin
// ends. Then it prints a line of JSON: for each port the frames and bytes that came in and went
// out, and the frames that were dropped because a queue of the port was full. Devices may be moved
// into other network namespaces once it is ready. They disappear when it ends.
//
// A port is a full-duplex link. In either direction a frame begins when the one before has left (a
// token bucket that holds one frame), and takes its bytes / rate; frames from a host arrive after
// `delay` seconds. The switch cuts through: a frame goes out while it is still coming in. Frames
// that a host has not sent yet wait in one queue per receiver. These queues take turns, as those of
// network cards do by connection; frames that wait to leave through a port do so in order of
// arrival. Each queue holds `--queue` bytes, and drops frames while it is full.
//
// Hosts hand over TCP segments of up to 64 KiB at once, as they do to network cards that split them
// (TSO), so that two system calls serve 45 frames of the wire. The headers that these frames would
// have on the wire are counted.

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <queue>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using Time = Clock::time_point;
using Address = std::array<std::uint8_t, 6>;

// The header before a frame, struct virtio_net_hdr, whose C header does not compile as C++.
struct VirtioHeader {
  std::uint8_t flags;
  // 0 if the frame is a single one on the wire, too.
  std::uint8_t segmentation;
  // The sizes of the headers of each frame of the wire, and of its payload.
  std::uint16_t header_bytes;
  std::uint16_t segment_bytes;
  std::uint16_t checksum_begin;
  std::uint16_t checksum_offset;
};
static_assert(sizeof(VirtioHeader) == 10);

constexpr std::size_t kHeaderBytes = sizeof(VirtioHeader);
constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kMostFrameBytes = kHeaderBytes + (std::size_t{1} << 16U) + 256;
// Frames are forwarded up to this much ahead of time, to keep a link busy while others are served.
constexpr std::chrono::microseconds kAhead{500};

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
}

struct Options {
  double rate = 0;
  double delay = 0;
  double queue = 64e6;
  std::vector<std::string> devices{};
};

// A frame as the kernel passes it, after its virtio header.
struct Frame {
  std::vector<std::uint8_t> bytes;
  // The total bytes of the frames that it becomes on the wire.
  double wire_bytes = 0;

  explicit Frame(std::span<const std::uint8_t> from) : bytes(from.begin(), from.end()) {
    VirtioHeader header{};
    std::memcpy(&header, bytes.data(), sizeof(header));
    const double length = static_cast<double>(bytes.size() - kHeaderBytes);
    wire_bytes = length;
    if (header.segmentation == 0 || header.segment_bytes == 0) return;
    const double segments = std::ceil((length - header.header_bytes) / header.segment_bytes);
    wire_bytes += std::max(0.0, segments - 1) * header.header_bytes;
  }

  [[nodiscard]] Address address(std::size_t at) const {
    Address address;
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(kHeaderBytes + at), address.size(),
                address.begin());
    return address;
  }
  [[nodiscard]] Address to() const { return address(0); }
  [[nodiscard]] Address from() const { return address(sizeof(Address)); }
  [[nodiscard]] bool is_for_all() const { return (to()[0] & 1U) != 0; }
};

class Device {
 public:
  explicit Device(const std::string& name)
      : fd_(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC)) {
    if (fd_ < 0) fail("/dev/net/tun");
    ifreq request{};
    if (name.empty() || name.size() >= sizeof(request.ifr_name)) {
      throw std::runtime_error(name + ": not the name of a device");
    }
    name.copy(request.ifr_name, name.size());
    request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
    if (ioctl(fd_, TUNSETIFF, &request) < 0) fail(name);
    const unsigned offload = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6;
    if (ioctl(fd_, TUNSETOFFLOAD, offload) < 0) fail(name);
  }
  ~Device() {
    if (fd_ >= 0) close(fd_);
  }
  Device(Device&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  Device& operator=(Device&&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  // Reads a frame; empty if there is none, or the device is down.
  [[nodiscard]] std::optional<Frame> take(std::vector<std::uint8_t>& buffer) const {
    const ssize_t bytes = read(fd_, buffer.data(), buffer.size());
    if (bytes < static_cast<ssize_t>(kHeaderBytes + kEthernetBytes)) return std::nullopt;
    return Frame(std::span(buffer).first(static_cast<std::size_t>(bytes)));
  }
  // Writes a frame; returns whether the kernel accepts it, as it does unless the device is down.
  [[nodiscard]] bool give(const Frame& frame) const {
    return write(fd_, frame.bytes.data(), frame.bytes.size()) ==
           static_cast<ssize_t>(frame.bytes.size());
  }

 private:
  int fd_;
};

struct Count {
  std::int64_t frames = 0;
  double wire_bytes = 0;

  void add(const Frame& frame) {
    ++frames;
    wire_bytes += frame.wire_bytes;
  }
};

// One direction of a link.
class Line {
 public:
  explicit Line(double rate) : rate_(rate) {}

  // Returns when the frame begins and ends, if it is ready at the time `at`.
  std::pair<Time, Time> send(const Frame& frame, Time at) {
    const Time begin = std::max(at, free_);
    free_ = begin + duration_of(frame.wire_bytes / rate_);
    return {begin, free_};
  }
  [[nodiscard]] Time free() const { return free_; }
  [[nodiscard]] double bytes_waiting(Time at) const {
    return std::max(0.0, Seconds(free_ - at).count()) * rate_;
  }

 private:
  double rate_;
  Time free_{};
};

// Frames in one queue per receiver; the queues take turns.
class FairQueue {
 public:
  void put(Frame frame) {
    bytes_ += frame.wire_bytes;
    const Address to = frame.to();
    auto& queue = queues_[to];
    if (queue.empty()) turns_.push_back(to);
    queue.push_back(std::move(frame));
  }
  // The queue must not be empty.
  Frame take() {
    const Address to = turns_.front();
    turns_.pop_front();
    auto& queue = queues_[to];
    Frame frame = std::move(queue.front());
    queue.pop_front();
    if (!queue.empty()) turns_.push_back(to);
    bytes_ -= frame.wire_bytes;
    return frame;
  }
  [[nodiscard]] bool empty() const { return turns_.empty(); }
  [[nodiscard]] double bytes() const { return bytes_; }

 private:
  std::map<Address, std::deque<Frame>> queues_;
  std::deque<Address> turns_;
  double bytes_ = 0;
};

struct Port {
  Device device;
  Line in;
  Line out;
  FairQueue waiting{};
  // The frames on their way to the host, each with its time of arrival.
  std::deque<std::pair<Time, Frame>> leaving{};
  Count taken{};
  Count given{};
  std::int64_t dropped = 0;
};

class Switch {
 public:
  explicit Switch(const Options& options) : options_(options), buffer_(kMostFrameBytes) {
    for (const std::string& name : options.devices) {
      ports_.push_back(
          {.device = Device(name), .in = Line(options.rate), .out = Line(options.rate)});
    }
  }

  // Forwards frames until stdin ends.
  void run() {
    std::vector<pollfd> waited;
    for (;;) {
      const Time now = Clock::now();
      arrive(now);
      leave(now);
      waited.assign({{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0}});
      for (const Port& port : ports_) {
        waited.push_back({.fd = port.device.fd(), .events = POLLIN, .revents = 0});
      }
      wait(waited);
      if (waited.front().revents != 0 && ended()) return;
      for (std::size_t i = 0; i < ports_.size(); ++i) {
        if ((waited[i + 1].revents & POLLIN) != 0) take(i);
        send(i);
      }
    }
  }

  void print_counts() const {
    std::printf("{");
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      const Port& port = ports_[i];
      std::printf(
          "%s\"%s\": {\"from_host\": {\"frames\": %lld, \"bytes\": %.0f}, \"to_host\": "
          "{\"frames\": %lld, \"bytes\": %.0f}, \"dropped\": %lld}",
          i == 0 ? "" : ", ", options_.devices[i].c_str(),
          static_cast<long long>(port.taken.frames), port.taken.wire_bytes,
          static_cast<long long>(port.given.frames), port.given.wire_bytes,
          static_cast<long long>(port.dropped));
    }
    std::printf("}\n");
  }

 private:
  // A frame that arrives at the switch at the time `at`.
  struct Coming {
    Time at;
    std::size_t from;
    Frame frame;

    friend bool operator<(const Coming& left, const Coming& right) { return left.at > right.at; }
  };

  [[nodiscard]] static bool ended() {
    char byte = 0;
    return read(STDIN_FILENO, &byte, 1) == 0;
  }

  void wait(std::vector<pollfd>& waited) const {
    Time next = Clock::now() + std::chrono::seconds(1);
    if (!coming_.empty()) next = std::min(next, coming_.top().at);
    for (const Port& port : ports_) {
      if (!port.leaving.empty()) next = std::min(next, port.leaving.front().first);
      if (!port.waiting.empty()) next = std::min(next, port.in.free() - kAhead);
    }
    const auto left = std::max(Clock::duration::zero(), next - Clock::now());
    constexpr long kNanoseconds = 1'000'000'000;
    const long nanoseconds = static_cast<long>(std::chrono::nanoseconds(left).count());
    const timespec limit{.tv_sec = nanoseconds / kNanoseconds,
                         .tv_nsec = nanoseconds % kNanoseconds};
    if (ppoll(waited.data(), waited.size(), &limit, nullptr) < 0 && errno != EINTR) fail("ppoll");
  }

  // Takes all frames that a host has ready.
  void take(std::size_t from) {
    Port& port = ports_[from];
    while (std::optional<Frame> frame = port.device.take(buffer_)) {
      places_[frame->from()] = from;
      if (port.waiting.bytes() > options_.queue) {
        ++port.dropped;
      } else {
        port.waiting.put(std::move(*frame));
      }
    }
  }

  void send(std::size_t from) {
    Port& port = ports_[from];
    while (!port.waiting.empty() && port.in.free() <= Clock::now() + kAhead) {
      Frame frame = port.waiting.take();
      port.taken.add(frame);
      const Time begin = port.in.send(frame, Clock::now()).first;
      coming_.push({begin + duration_of(options_.delay), from, std::move(frame)});
    }
  }

  void arrive(Time now) {
    while (!coming_.empty() && coming_.top().at <= now) {
      const Coming& coming = coming_.top();
      const auto place = places_.find(coming.frame.to());
      for (std::size_t to = 0; to < ports_.size(); ++to) {
        const bool known = !coming.frame.is_for_all() && place != places_.end();
        if (to == coming.from || (known && place->second != to)) continue;
        queue(ports_[to], coming);
      }
      coming_.pop();
    }
  }

  void queue(Port& port, const Coming& coming) const {
    if (port.out.bytes_waiting(coming.at) > options_.queue) {
      ++port.dropped;
      return;
    }
    const Time end = port.out.send(coming.frame, coming.at).second;
    port.leaving.emplace_back(end, coming.frame);
  }

  void leave(Time now) {
    for (Port& port : ports_) {
      while (!port.leaving.empty() && port.leaving.front().first <= now) {
        const Frame& frame = port.leaving.front().second;
        if (port.device.give(frame)) port.given.add(frame);
        port.leaving.pop_front();
      }
    }
  }

  Options options_;
  std::vector<std::uint8_t> buffer_;
  std::vector<Port> ports_;
  std::priority_queue<Coming> coming_;
  // The port of the host with that address.
  std::map<Address, std::size_t> places_;
};

double number_of(const std::string& name, const std::string& text) {
  std::size_t used = 0;
  double number = -1;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || !(number >= 0)) {
    throw std::runtime_error(name + " " + text + ": accepted: a number of at least 0");
  }
  return number;
}

Options parse(std::span<char*> arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string name = arguments[i];
    double* const number = name == "--rate"    ? &options.rate
                           : name == "--delay" ? &options.delay
                           : name == "--queue" ? &options.queue
                                               : nullptr;
    if (number == nullptr) {
      options.devices.push_back(name);
      continue;
    }
    if (++i == arguments.size()) throw std::runtime_error(name + ": a value is missing");
    *number = number_of(name, arguments[i]);
  }
  if (options.rate == 0) throw std::runtime_error("--rate: accepted: bytes in a second, above 0");
  if (options.devices.size() < 2) throw std::runtime_error("accepted: two devices at least");
  return options;
}

// Asks for real-time priority, because a network does not wait for CPUs on which hosts compute.
// Warns if the kernel refuses.
void be_on_time() {
  const sched_param priority{.sched_priority = 2};
  if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0) {
    std::fprintf(stderr, "emulated_switch: no real-time priority: %s\n", std::strerror(errno));
  }
  // The default timer slack would delay the end of a wait by up to 50 microseconds.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Switch network(parse(std::span(argv, static_cast<std::size_t>(argc)).subspan(1)));
    be_on_time();
    std::printf("ready\n");
    std::fflush(stdout);
    network.run();
    network.print_counts();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "emulated_switch: %s\n", error.what());
    return 1;
  }
}
