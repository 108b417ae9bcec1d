// Programs that are killed without warning, at random moments.
#pragma once

#include <cstdlib>
#include <iostream>
#include <random>
#include <set>

#include "tests/support/launched.hpp"
#include "tests/support/program.hpp"

namespace gs {

/// GS_CRASH_MOMENTS for each command; else a handful.
inline int crash_moments() {
  const char* const wanted = std::getenv("GS_CRASH_MOMENTS");
  return wanted ? std::atoi(wanted) : is_sanitized() ? 2 : 6;
}

inline unsigned crash_seed() {  ///< GS_CRASH_SEED, or another one each time
  static const char* const wanted = std::getenv("GS_CRASH_SEED");
  static const unsigned seed = wanted ? unsigned(std::atoll(wanted)) : std::random_device{}();
  return seed;
}

class WithMoments : public WithProgram {
 protected:
  using Command = std::vector<std::string>;  ///< processes that are started together: a shell line each

  WithMoments() { std::cout << "crash moments: GS_CRASH_SEED=" << crash_seed() << std::endl; }
  ~WithMoments() override {
    if (killed_ > 0) std::cout << "crash moments: " << killed_ << " kills, " << missed_ << " came late" << std::endl;
  }

  std::string program(const std::string& arguments) const { return cat("'", GS_BINARY, "' ", arguments); }

  /// Seconds to the end, which must be a good one.
  double time(const Command& command) {
    const double start_s = now_s();
    std::vector<Launched> processes = launch(command);
    for (Launched& process : processes) EXPECT_EQ(process.wait(), 0) << process.err();
    return now_s() - start_s;
  }

  /// Kills `command` of a usual length of whole_s at so many moments, each begun by prepare() and looked at by check().
  /// They lie all over that length, in its last fifth, and a little after a file has come into being.
  void kill_often(const Command& command, double whole_s, const std::function<void()>& prepare,
                  const std::function<void()>& check) {
    int most_files = 30;
    for (int i = 0, late = 0; i < crash_moments() && !HasFailure();) {
      prepare();
      if (kill(command, whole_s, most_files, i)) {
        ++i, ++killed_;
      } else if (++late, ++missed_; late > 10 * crash_moments()) {
        return void(ADD_FAILURE() << "the command ends before it can be killed");
      } else {  // it is shorter than it was
        whole_s *= 0.95, most_files = std::max(1, most_files - 1);
      }
      check();
    }
  }

  /// What a process has under way, and what is in its way: names that no user gave.
  std::vector<std::string> leftovers() const {
    std::vector<std::string> found;
    for (const std::string& name : everything())
      for (const char* part : {".tmp-", ".next", ".previous"})
        if (says(name, part)) found.push_back(name);
    return found;
  }

  int killed_ = 0, missed_ = 0;
  std::mt19937 random_{crash_seed()};

 private:
  std::vector<Launched> launch(const Command& command) const {
    std::vector<Launched> processes;
    for (std::size_t i = 0; i < command.size(); ++i) processes.emplace_back(folder_, cat("process", i), command[i]);
    return processes;
  }

  double up_to(double end) { return std::uniform_real_distribution<double>(0, end)(random_); }

  /// False where it had ended. Of several processes all are killed, or one, and the others end by themselves.
  bool kill(const Command& command, double whole_s, int most_files, int moment) {
    const bool of_files = moment % 3 == 2;
    const double after_s = whole_s * (of_files ? up_to(0.1) : moment % 3 == 0 ? up_to(1) : 0.8 + up_to(0.2));
    const int files = of_files ? 1 + int(up_to(1) * up_to(most_files)) : 0;
    const std::size_t victim = random_() % command.size();
    const bool all = random_() % 2 == 0;

    std::vector<Launched> processes = launch(command);
    await_files(files, whole_s);
    std::this_thread::sleep_for(std::chrono::duration<double>(after_s));
    for (std::size_t i = 0; i < processes.size(); ++i)
      if (all || i == victim) processes[i].send(SIGKILL);

    bool killed = false;
    for (Launched& process : processes) {
      const std::optional<int> status = process.wait();
      EXPECT_TRUE(status.has_value()) << "a process goes on without the one that was killed";
      killed = killed || status == -SIGKILL;
    }
    return killed;
  }

  /// So many files that were not there.
  void await_files(int count, double at_most_s) const {
    const std::vector<std::string> before = everything();
    std::set<std::string> known(before.begin(), before.end());
    for (const double end_s = now_s() + at_most_s; count > 0 && now_s() < end_s;
         std::this_thread::sleep_for(std::chrono::microseconds(200)))
      for (const std::string& name : everything()) count -= known.insert(name).second;
  }

  /// All files and folders below the test's, though they come and go meanwhile.
  std::vector<std::string> everything() const {
    std::vector<std::string> found;
    std::error_code gone;
    for (fs::recursive_directory_iterator entry(folder_, gone), end; !gone && entry != end; entry.increment(gone))
      found.push_back(entry->path().lexically_relative(folder_));
    return found;
  }
};

}  // namespace gs
