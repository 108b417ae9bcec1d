// The program itself, run as a shell runs it, in a folder of the test's own.
#pragma once

#include <sys/wait.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "graphscale/checkpoint.hpp"

#include "tests/support/folder.hpp"

namespace gs {

struct Outcome {
  int status = -1;  ///< -1: ended by a signal
  std::string out, err;

  std::string last_line() const {  ///< of err
    const std::size_t end = err.find_last_not_of('\n');
    if (end == std::string::npos) return "";
    return err.substr(err.rfind('\n', end) + 1, end - err.rfind('\n', end));
  }
};

inline bool is_sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;  // the sanitizer maps terabytes of shadow: a limit on address space would stop it at its start
#else
  return false;
#endif
}

using Vectors = std::map<std::string, std::vector<float>>;  ///< by name

class WithProgram : public InFolder {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// `graphscale ARGUMENTS` inside the folder; `before` is shell that comes first, as "ulimit -f 64 &&".
  Outcome run(const std::string& arguments, const std::string& before = "") const {
    const int status = std::system(
        cat("cd '", folder_.string(), "' && ", before, " '", GS_BINARY, "' ", arguments, " >.out 2>.err").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, bytes_of(folder_ / ".out"), bytes_of(folder_ / ".err")};
  }

  /// As run, of a command that must end well.
  Outcome succeed(const std::string& arguments, const std::string& before = "") const {
    const Outcome outcome = run(arguments, before);
    EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.err;
    return outcome;
  }

  /// The last line of stderr of a command that must end with that status: an error without time and level.
  std::string refusal(int status, const std::string& arguments, const std::string& before = "") const {
    const Outcome outcome = run(arguments, before);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "");
    const std::string line = outcome.last_line();
    const std::size_t level = line.find("error: ");
    EXPECT_NE(level, std::string::npos) << outcome.err;
    return level == std::string::npos ? "" : line.substr(level + 7);
  }

  nlohmann::json json(const std::string& arguments) const {
    return nlohmann::json::parse(succeed(arguments + " --json").out);
  }

  /// What the test made: hidden files are its own.
  std::vector<std::string> visible() const {
    std::vector<std::string> names = listing();
    std::erase_if(names, [](const std::string& name) { return name[0] == '.'; });
    return names;
  }

  Vectors vectors(const std::string& run) const {
    const Embeddings embeddings = Embeddings::open(folder_ / run);
    const Rows<const float> rows = embeddings.rows();
    Vectors vectors;
    for (Offset row = 0; row < rows.count; ++row)
      vectors[embeddings.names().name(row)].assign(rows.row(row), rows.row(row) + rows.dim);
    return vectors;
  }
};

inline double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t c = 0; c < a.size(); ++c)
    ab += double(a[c]) * b[c], aa += double(a[c]) * a[c], bb += double(b[c]) * b[c];
  return ab / std::sqrt(aa * bb);
}

/// The values of .npy files and text are compared by their bytes: -0 is not 0.
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace gs
