// What a server of metrics answers: its HTTP, and whether its text is Prometheus's format 0.0.4.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "graphscale/files.hpp"

namespace gs {

/// A connection to this machine's port that may still be under way.
inline int begin_to_connect(int port, int type = SOCK_STREAM | SOCK_NONBLOCK) {
  const int socket = ::socket(AF_INET, type, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET, address.sin_port = htons(std::uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 || errno == EINPROGRESS)
    return socket;
  ::close(socket);
  return -1;
}

/// A connection to this machine's port, or -1.
inline int connect_to(int port) { return begin_to_connect(port, SOCK_STREAM); }

struct HttpAnswer {
  int status = 0;  ///< 0: nobody listens
  std::string head, body;
};

inline HttpAnswer http_get(int port, const std::string& path) {
  const int socket = connect_to(port);
  if (socket < 0) return {};
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_EQ(::send(socket, request.data(), request.size(), MSG_NOSIGNAL), ssize_t(request.size()));
  std::string all;
  char block[4096];
  for (ssize_t count; (count = ::recv(socket, block, sizeof block, 0)) > 0;) all.append(block, std::size_t(count));
  ::close(socket);
  const std::size_t end = all.find("\r\n\r\n");
  if (all.size() < 12 || end == std::string::npos) return {};
  return {std::atoi(all.c_str() + 9), all.substr(0, end), all.substr(end + 4)};
}

/// Addresses and ports, in hexadecimal, that a process listens at.
inline std::vector<std::string> listening(pid_t process) {
  std::set<std::string> own;
  const fs::path folder = fs::path("/proc") / std::to_string(process);
  for (const auto& entry : fs::directory_iterator(folder / "fd")) {
    std::error_code gone;
    const std::string to = fs::read_symlink(entry.path(), gone).string();
    if (to.starts_with("socket:[")) own.insert(to.substr(8, to.size() - 9));
  }
  std::vector<std::string> found;
  for (const char* file : {"net/tcp", "net/tcp6"}) {
    std::ifstream in(folder / file);
    std::string line, word;
    for (std::getline(in, line); std::getline(in, line);) {
      std::istringstream words(line);
      std::vector<std::string> columns;
      while (words >> word) columns.push_back(word);
      if (columns.size() > 9 && columns[3] == "0A" && own.contains(columns[9])) found.push_back(columns[1]);
    }
  }
  return found;
}

/// A page's samples, `name{labels}` as written. Whatever the format does not allow is a failure of the test.
inline std::map<std::string, double> samples_of(const std::string& page) {
  static const std::regex help("# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)");
  static const std::regex type("# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|summary)");
  static const std::regex sample(
      R"(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{([a-zA-Z_]\w*="([^"\\]|\\["\\n])*")(,[a-zA-Z_]\w*="([^"\\]|\\["\\n])*")*\})? (\S+))");
  std::map<std::string, double> samples;
  std::set<std::string> metrics;
  std::string helped, current, kind;
  EXPECT_TRUE(page.ends_with("\n"));
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    std::smatch parts;
    if (std::regex_match(line, parts, help)) {
      EXPECT_TRUE(metrics.insert(parts[1]).second) << "twice: " << line;
      helped = parts[1];
    } else if (std::regex_match(line, parts, type)) {
      EXPECT_EQ(parts[1], helped) << "a type belongs to the help before it: " << line;
      current = parts[1], kind = parts[2];
      EXPECT_EQ(kind == "counter", current.ends_with("_total")) << line;
    } else if (std::regex_match(line, parts, sample)) {
      const std::string name = parts[1], value = parts[7];
      EXPECT_TRUE(name == current || (kind == "summary" && (name == current + "_sum" || name == current + "_count")))
          << "not of " << current << ": " << line;
      EXPECT_TRUE(name.starts_with("graphscale_")) << line;
      char* end = nullptr;
      const double number = std::strtod(value.c_str(), &end);
      EXPECT_EQ(*end, '\0') << line;
      EXPECT_TRUE(kind != "counter" || number >= 0) << line;
      EXPECT_TRUE(samples.emplace(name + parts[2].str(), number).second) << "twice: " << line;
    } else {
      ADD_FAILURE() << "neither help, type nor sample: " << line;
    }
  }
  return samples;
}

}  // namespace gs
