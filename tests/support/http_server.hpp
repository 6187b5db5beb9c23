#pragma once

#include <array>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rubato::test {

/// Serves files by HTTP on the loopback interface, one request at a time, and badly where it is
/// told to.
class HttpServer {
 public:
  struct File {
    std::string content{};
    /// Closes the connection after so many bytes of the content, once.
    std::optional<std::size_t> cut{};
    /// Answers that ask for a part with the whole.
    bool ignores_ranges = false;
    /// Does not say how long the content is.
    bool has_no_length = false;
  };

  HttpServer() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (bind(socket_, any, size) != 0 || listen(socket_, 8) != 0 ||
        getsockname(socket_, any, &size) != 0) {
      std::abort();
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~HttpServer() {
    shutdown(socket_, SHUT_RDWR);
    thread_.join();
    close(socket_);
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  void put(const std::string& name, File file) {
    const std::lock_guard lock(mutex_);
    files_["/" + name] = std::move(file);
  }
  [[nodiscard]] std::string url() const { return fmt::format("http://127.0.0.1:{}/", port_); }
  /// "NAME" or "NAME from BEGIN", of each request.
  [[nodiscard]] std::vector<std::string> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    while (true) {
      const int connection = accept(socket_, nullptr, nullptr);
      if (connection < 0) return;
      std::string request;
      std::array<char, 4096> bytes{};
      while (request.find("\r\n\r\n") == std::string::npos) {
        const ssize_t count = recv(connection, bytes.data(), bytes.size(), 0);
        if (count <= 0) break;
        request.append(bytes.data(), static_cast<std::size_t>(count));
      }
      const std::string answer = answer_to(request);
      for (std::size_t sent = 0; sent < answer.size();) {
        const ssize_t count =
            send(connection, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
        if (count <= 0) break;
        sent += static_cast<std::size_t>(count);
      }
      close(connection);
    }
  }

  std::string answer_to(const std::string& request) {
    const std::lock_guard lock(mutex_);
    const std::string name = request.substr(4, request.find(' ', 4) - 4);
    constexpr std::string_view kRange = "Range: bytes=";
    const std::size_t range = request.find(kRange);
    const std::size_t begin =
        range == std::string::npos ? 0 : std::stoul(request.substr(range + kRange.size()));
    requests_.push_back(name.substr(1) + (begin > 0 ? fmt::format(" from {}", begin) : ""));
    const auto found = files_.find(name);
    if (found == files_.end()) return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    File& file = found->second;
    if (begin >= file.content.size() && begin > 0 && !file.ignores_ranges) {
      return "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n";
    }
    const bool partly = begin > 0 && !file.ignores_ranges;
    std::string content = file.content.substr(partly ? begin : 0);
    std::string answer = partly ? fmt::format(
                                      "HTTP/1.1 206 Partial Content\r\n"
                                      "Content-Range: bytes {}-{}/{}\r\n",
                                      begin, file.content.size() - 1, file.content.size())
                                : "HTTP/1.1 200 OK\r\n";
    if (!file.has_no_length) answer += fmt::format("Content-Length: {}\r\n", content.size());
    if (file.cut) content.resize(*std::exchange(file.cut, std::nullopt));
    return answer + "Connection: close\r\n\r\n" + content;
  }

  int socket_;
  int port_ = 0;
  std::mutex mutex_;
  std::map<std::string, File> files_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace rubato::test
