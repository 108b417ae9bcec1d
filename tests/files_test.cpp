#include "graphscale/files.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/compressed.hpp"
#include "tests/support/folder.hpp"

namespace gs {
namespace {

using Files = InFolder;

TEST_F(Files, AMappedFileHasTheFilesBytes) {
  const MappedFile file(make("a", "hello"));

  EXPECT_EQ(std::string(file.bytes().data, 5), "hello");
  EXPECT_EQ(file.bytes().size, 5);
}

TEST_F(Files, AnEmptyFileMapsAsEmpty) { EXPECT_EQ(MappedFile(make("empty", "")).bytes().size, 0); }

TEST_F(Files, AMissingFileAFolderAndADeviceCannotBeMapped) {
  EXPECT_SAYS(sentence_of(Fault::input, [&] { MappedFile(folder_ / "none"); }), "none: cannot be read: No such file");
  EXPECT_SAYS(sentence_of(Fault::input, [&] { MappedFile(fs::path(folder_)); }), "is a folder");
  EXPECT_SAYS(sentence_of(Fault::input, [&] { MappedFile("/dev/null"); }), "not a regular file");
}

TEST_F(Files, ReadTextReadsAllAndNamesWhatIsMissing) {
  EXPECT_EQ(read_text(make("a", "1\n2")), "1\n2");
  EXPECT_SAYS(sentence_of(Fault::input, [&] { read_text(folder_ / "none"); }), "none: cannot be read");
  EXPECT_SAYS(sentence_of(Fault::input, [&] { read_text(folder_); }), "is a folder");
}

TEST_F(Files, ReadTextTakesNoMoreThanASmallFileHolds) {
  const fs::path bomb = make("bomb", gzipped(std::string(std::size_t{65} << 20, ' ')));

  EXPECT_LT(fs::file_size(bomb), 100'000u);
  EXPECT_SAYS(sentence_of(Fault::input, [&] { read_text(bomb); }), "bomb: has more than 64 MiB of text");
}

TEST_F(Files, MutatedFilesGiveAnErrorOrBytesNeverACrash) {
  std::mt19937 random(1);
  write_npy<float>(folder_ / "a.npy", std::vector<float>(30));
  const std::string originals[] = {bytes_of(folder_ / "a.npy"), gzipped(edge_lines(60)), zstded(edge_lines(60))};
  int refused = 0;

  for (int round = 0; round < 1500; ++round) {
    std::string bytes = originals[round % 3];
    for (int edits = 1 + int(random() % 4); edits > 0; --edits) {
      const std::size_t at = random() % bytes.size();
      if (random() % 4 == 0) bytes.resize(at + 1);
      bytes[at % bytes.size()] = char(random());
    }
    const fs::path path = make("mutated", bytes);
    try {
      if (round % 3 == 0) {
        const NpyArray array(path);
        if (array.dtype() == Dtype::f32) {
          EXPECT_LE(array.values<float>().size * 4, Offset(bytes.size()));
        }
      } else {
        drained(path, 1000);
      }
    } catch (const Error& error) {
      EXPECT_EQ(int(error.fault), int(Fault::input)) << error.what();
      ++refused;
    }
  }

  EXPECT_GT(refused, 500);  // most mutations hit something that is checked
}

}  // namespace
}  // namespace gs
