#include <gtest/gtest.h>

#include "graphscale/files.hpp"

#include "tests/support/compressed.hpp"
#include "tests/support/folder.hpp"

namespace gs {
namespace {

using Bytes = InFolder;

TEST_F(Bytes, GzipAndZstdAreKnownByTheirFirstBytesNotByName) {
  const std::string text = edge_lines(1000);

  EXPECT_EQ(drained(make("plain.gz", text)), text);
  EXPECT_EQ(drained(make("gzip.txt", gzipped(text))), text);
  EXPECT_EQ(drained(make("zstd.txt", zstded(text))), text);
}

TEST_F(Bytes, MembersAndFramesAreReadOneAfterAnother) {
  const std::string a = edge_lines(1000), b = edge_lines(70000);

  EXPECT_EQ(drained(make("ab.gz", gzipped(a) + gzipped("") + gzipped(b))), a + b);
  EXPECT_EQ(drained(make("ab.zst", zstded(a) + zstded("") + zstded(b))), a + b);
}

TEST_F(Bytes, TheSizeOfReadsDoesNotMatter) {
  const std::string text = edge_lines(500);

  for (const Offset capacity : {1, 7, 4096}) {
    EXPECT_EQ(drained(make("a", text), capacity), text);
    EXPECT_EQ(drained(make("a.gz", gzipped(text) + gzipped(text)), capacity), text + text);
    EXPECT_EQ(drained(make("a.zst", zstded(text) + zstded(text)), capacity), text + text);
  }
}

TEST_F(Bytes, ASkippableZstdFrameMayComeFirst) {
  const std::string skippable("\x50\x2A\x4D\x18\x03\0\0\0abc", 11);

  EXPECT_EQ(drained(make("a.zst", skippable + zstded("text"))), "text");
}

TEST_F(Bytes, ZeroBytesAfterGzipDataAreIgnored) {
  EXPECT_EQ(drained(make("a.gz", gzipped("text") + std::string(3000000, '\0'))), "text");
}

TEST_F(Bytes, OtherBytesAfterGzipDataAreRefused) {
  const fs::path path = make("a.gz", gzipped("text") + "rubbish");

  EXPECT_SAYS(sentence_of(Fault::input, [&] { drained(path); }), "a.gz: gzip data is damaged near byte");
}

TEST_F(Bytes, CutCompressedDataIsTruncatedWhereverItIsCut) {
  const std::string gz = gzipped(edge_lines(50)), zst = zstded(edge_lines(50));

  for (std::size_t cut = 4; cut < gz.size(); ++cut)
    EXPECT_SAYS(sentence_of(Fault::input, [&] { drained(make("a.gz", gz.substr(0, cut))); }),
                cat("a.gz: gzip data is truncated after ", cut, " bytes"));
  for (std::size_t cut = 4; cut < zst.size(); ++cut)
    EXPECT_SAYS(sentence_of(Fault::input, [&] { drained(make("a.zst", zst.substr(0, cut))); }),
                cat("a.zst: zstd data is truncated after ", cut, " bytes"));
}

TEST_F(Bytes, ArchivesThatAreNotReadAreNamed) {
  EXPECT_SAYS(sentence_of(Fault::input,
                          [&] {
                            drained(make("a", std::string("\xFD"
                                                          "7zXZ\0\0\0\0\0",
                                                          10)));
                          }),
              "xz data");
  EXPECT_SAYS(sentence_of(Fault::input, [&] { drained(make("a", "BZh91AY&SY....")); }), "bzip2 data");
}

TEST_F(Bytes, ProgressThroughACompressedFileIsInBytesOnDisk) {
  const std::string gz = gzipped(edge_lines(1000));
  ByteSource source(make("a.gz", gz));
  std::vector<char> block(1 << 20);

  while (source.read(block.data(), Offset(block.size()))) {
  }

  EXPECT_TRUE(source.compressed());
  EXPECT_EQ(source.file_bytes(), Offset(gz.size()));
  EXPECT_EQ(source.consumed_bytes(), Offset(gz.size()));
}

}  // namespace
}  // namespace gs
