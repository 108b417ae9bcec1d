// The program as processes of their own: started with an environment, sent signals, waited for with a limit.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <thread>

#include "tests/support/folder.hpp"

namespace gs {

/// False where `condition` has not come true within limit_s.
template <class Condition>
bool comes_true(Condition condition, double limit_s = 60) {
  for (const double end_s = now_s() + limit_s; now_s() < end_s;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return condition();
}

/// Processes whose command line or environment holds `mark`; zombies have neither.
inline std::vector<pid_t> processes_with(const std::string& mark, const std::string& variable = "") {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (bytes_of(entry.path() / "cmdline").find(mark) == std::string::npos) continue;
    if (!variable.empty() && bytes_of(entry.path() / "environ").find(variable) == std::string::npos) continue;
    found.push_back(pid_t(std::stol(name)));
  }
  return found;
}

/// A shell command as a process of its own in `folder`, its output in FOLDER/.NAME.out and .NAME.err. The command
/// replaces the shell, so that signals reach it. What is still there at the end is killed.
class Launched {
 public:
  Launched(fs::path folder, std::string name, const std::string& command)
      : folder_(std::move(folder)), name_(std::move(name)) {
    const std::string out = file("out"), err = file("err"), line = "exec " + command;
    id_ = ::fork();
    if (id_ != 0) return;
    const int to_out = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int to_err = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (::chdir(folder_.c_str()) == 0 && ::dup2(to_out, 1) == 1 && ::dup2(to_err, 2) == 2)
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  Launched(Launched&& other) noexcept
      : folder_(std::move(other.folder_)), name_(std::move(other.name_)), id_(std::exchange(other.id_, -1)) {}
  ~Launched() {
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }

  pid_t id() const { return id_; }
  void send(int signal) const { ::kill(id_, signal); }

  /// Its exit status; -SIGNAL where a signal ended it; nothing, and it is killed, where it goes on after limit_s.
  std::optional<int> wait(double limit_s = 60) {
    int status = 0;
    const bool ended = comes_true([&] { return ::waitpid(id_, &status, WNOHANG) == id_; }, limit_s);
    if (!ended) {
      ::kill(id_, SIGKILL);
      ::waitpid(id_, nullptr, 0);
    }
    id_ = -1;
    if (!ended) return std::nullopt;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  std::string out() const { return bytes_of(file("out")); }
  std::string err() const { return bytes_of(file("err")); }

 private:
  std::string file(const char* kind) const { return (folder_ / ("." + name_ + "." + kind)).string(); }

  fs::path folder_;
  std::string name_;
  pid_t id_ = -1;
};

inline int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace gs
