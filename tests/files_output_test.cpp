#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "graphscale/files.hpp"

#include "tests/support/folder.hpp"

namespace gs {
namespace {

using Output = InFolder;

TEST_F(Output, NothingIsSeenOfAFileBeforeItsCommit) {
  {
    OutputFile file(folder_ / "a");
    file.write("half");
    EXPECT_FALSE(fs::exists(folder_ / "a"));
  }

  EXPECT_TRUE(listing().empty());
}

TEST_F(Output, ACommittedFileReplacesTheOldOne) {
  make("a", "old");
  const std::string large(3000000, 'y');

  OutputFile file(folder_ / "a");
  file.write("new");
  file.write(large);
  file.write("end");
  EXPECT_EQ(bytes_of(folder_ / "a"), "old");
  file.commit();

  EXPECT_EQ(bytes_of(folder_ / "a"), "new" + large + "end");
  EXPECT_EQ(listing(), std::vector<std::string>{"a"});
}

TEST_F(Output, AFileBehindALinkIsReplacedNotTheLink) {
  make("real", "old");
  fs::create_symlink("real", folder_ / "link");

  write_text(folder_ / "link", "new");

  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(bytes_of(folder_ / "real"), "new");
}

TEST_F(Output, AFullDiskIsReportedAndLeavesTheOldFile) {
  make("a", "old");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{65536, before.rlim_max};

  setrlimit(RLIMIT_FSIZE, &small);
  const std::string sentence = sentence_of(Fault::output, [&] { write_text(folder_ / "a", std::string(100000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);

  EXPECT_SAYS(sentence, "a: writing failed: File too large");
  EXPECT_EQ(bytes_of(folder_ / "a"), "old");
  EXPECT_EQ(listing(), std::vector<std::string>{"a"});
}

TEST_F(Output, AFileThatFailedOnceCannotBeCommitted) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{65536, before.rlim_max};
  OutputFile file(folder_ / "a");

  setrlimit(RLIMIT_FSIZE, &small);
  sentence_of(Fault::output, [&] { file.write(std::string(3000000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);

  sentence_of(Fault::output, [&] { file.commit(); });
  EXPECT_TRUE(listing().empty());
}

TEST_F(Output, PlacesThatCannotBeWrittenAreRefusedAtOnce) {
  for (const char* place : {"/dev/full", "/dev/null", "/no/such/dir/x", "/proc/graphscale"}) {
    EXPECT_SAYS(sentence_of(Fault::output, [&] { check_writable(place); }), place);
    EXPECT_SAYS(sentence_of(Fault::output, [&] { OutputFile file(place); }), place);
    EXPECT_SAYS(sentence_of(Fault::output, [&] { OutputFolder folder(place); }), place);
  }
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(Output, AParentThatIsAFileIsNamed) {
  make("file", "");

  EXPECT_SAYS(sentence_of(Fault::output, [&] { check_writable(folder_ / "file" / "x"); }), "is not a folder");
}

TEST_F(Output, CheckingAWritablePlaceLeavesNothingThere) {
  check_writable(folder_ / "a");
  check_writable(folder_);

  EXPECT_TRUE(listing().empty());
}

TEST_F(Output, AFolderAppearsWholeOrNotAtAll) {
  {
    const OutputFolder lost(folder_ / "lost");
    write_text(lost.path() / "x", "1");
  }
  OutputFolder folder(folder_ / "kept/");
  write_text(folder.path() / "x", "1");
  EXPECT_FALSE(fs::exists(folder_ / "kept"));
  folder.commit();

  EXPECT_EQ(listing(), std::vector<std::string>{"kept"});
  EXPECT_EQ(bytes_of(folder_ / "kept" / "x"), "1");
}

TEST_F(Output, AFolderThatExistsIsNeitherReplacedNorMixed) {
  fs::create_directory(folder_ / "a");
  make("a/old", "1");

  EXPECT_SAYS(sentence_of(Fault::output, [&] { OutputFolder folder(folder_ / "a"); }), "exists already");
  EXPECT_EQ(bytes_of(folder_ / "a" / "old"), "1");
}

TEST_F(Output, AFolderWhoseNameWasTakenCanBeCommittedUnderAnother) {
  OutputFolder folder(folder_ / "v1");
  write_text(folder.path() / "x", "mine");
  fs::create_directory(folder_ / "v1");
  make("v1/x", "theirs");

  EXPECT_FALSE(folder.commit_as(folder_ / "v1"));
  EXPECT_TRUE(folder.commit_as(folder_ / "v2"));

  EXPECT_EQ(bytes_of(folder_ / "v1" / "x"), "theirs");
  EXPECT_EQ(bytes_of(folder_ / "v2" / "x"), "mine");
}

TEST_F(Output, LeftoversOfDeadProcessesAreSweptAndOthersKept) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const pid_t dead = fork();
  if (dead == 0) _exit(0);
  waitpid(dead, nullptr, 0);
  const std::string of_dead = cat(".a.tmp-", host, "-", dead, "-00c0ffee");
  const std::string of_living = cat(".b.tmp-", host, "-", ::getpid(), "-00c0ffee");
  const std::string of_another_host = cat(".c.tmp-", host, "x-", dead, "-00c0ffee");
  for (const std::string& name : {of_dead, of_living, of_another_host}) fs::create_directory(folder_ / name);
  make(of_dead + "/x", "1");

  OutputFolder(folder_ / "new").commit();

  EXPECT_EQ(listing(), (std::vector<std::string>{of_living, of_another_host, "new"}));
}

TEST_F(Output, FreeSpaceIsThatOfTheNearestExistingFolder) { EXPECT_GT(free_bytes(folder_ / "not" / "yet"), 0); }

}  // namespace
}  // namespace gs
