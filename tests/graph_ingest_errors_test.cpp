#include <gtest/gtest.h>

#include "tests/support/ingest_folder.hpp"

namespace gs {
namespace {

using BadInput = IngestFolder;

struct BadCase {
  std::string text, says;
  bool weighted = false;
};

TEST_F(BadInput, IsAnsweredByOneLineWithFileLineAndReason) {
  const std::vector<BadCase> cases = {
      {"", "edges.txt: no edges found (0 lines"},
      {"# only\n\n", "no edges found (2 lines, 2 of them blank or comments"},
      {"src,dst\n", "no edges found (1 lines, 0 of them blank or comments, 1 headers"},
      {"1 2\n3\n", "edges.txt:2: expected at least 2 columns separated by blanks, found 1: \"3\""},
      {"1\t2\n17\t", "edges.txt:2: column 2 is empty: an edge needs two names"},
      {"a,,b\n", "edges.txt:1: column 2 is empty"},
      {"\"\",b\n", "edges.txt:1: column 1 is empty"},
      {"0,1\n1\t2\n2 0\n3, 4\n", "edges.txt:2: expected at least 2 columns separated by commas, found 1: \"1\\t2\""},
      {"0 1\n3, 4\n", "edges.txt:2: column 1, \"3,\", holds a comma where this file's columns are separated by blanks"},
      {"0,1\n2\t3,4\n", "edges.txt:2: column 1, \"2\\t3\", holds a tab where"},
      {"a,\"b\nc\",d\n", "edges.txt:1: a quote is opened and never closed"},
      {"a b\nc\rd e\n", "edges.txt:2: a carriage return inside the line"},
      {std::string("a b\nc\0 d\n", 9), "edges.txt:2: a zero byte: this is no text"},
      {"\xFF\xFE"
       "1 2\n",
       "edges.txt:1: UTF-16 text: convert it first"},
      {"A B 0\nA G -2\n", "edges.txt:2: weight \"-2\" is negative", true},
      {"A B 0\nA H nan\n", "edges.txt:2: weight \"nan\" is not finite", true},
      {"A B 0\nA I inf\n", "edges.txt:2: weight \"inf\" is not finite", true},
      {"A B 0\nA L 0,5\n", "edges.txt:2: weight \"0,5\" is not a number", true},
      {"A B 0\nA K\n", "edges.txt:2: no weight: expected 3 columns, found 2", true},
      {"A B 0\nA N 1e99\n", "edges.txt:2: weight \"1e99\" is out of the range of a 32-bit float", true}};

  for (const BadCase& c : cases) {
    IngestOptions options;
    options.weighted = c.weighted;
    const std::string sentence = sentence_of(Fault::input, [&] { read(c.text, options); });

    EXPECT_SAYS(sentence, c.says);
    EXPECT_EQ(sentence.find('\n'), std::string::npos);
  }
}

TEST_F(BadInput, IsReportedByItsEarliestLineThoughBlocksAreParsedInParallel) {
  // 40 MB of good lines would be slow: three blocks of 1 MB with a bad line in each but the first.
  std::string text = "# a comment\nsource target\n";
  Offset lines = 2, first_bad = 0;
  for (const int bad_behind : {1500000, 2200000, 3000000}) {
    for (; text.size() < std::size_t(bad_behind); ++lines) text += "12345 67890\n";
    text += "lonely\n";
    ++lines;
    if (first_bad == 0) first_bad = lines;
  }

  for (const int threads : {1, 2, 8}) {
    IngestOptions options;
    options.threads = threads;
    const auto sentence = sentence_of(Fault::input, [&] { read(text, options); });

    EXPECT_SAYS(sentence, cat("edges.txt:", first_bad, ": expected at least 2 columns"));
  }
}

TEST_F(BadInput, NamesTheLineOfTheFileItIsIn) {
  const fs::path good = make("good.txt", "1 2\n2 3\n"), bad = make("bad.txt", "3 4\n\nx\n");

  const auto sentence = sentence_of(Fault::input, [&] { ingest({good, bad}, {}, counts_); });

  EXPECT_SAYS(sentence, "bad.txt:3: ");
}

TEST_F(BadInput, IsFoundBeforeReadingWhereAFileIsMissing) {
  const fs::path bad = make("bad.txt", "not-an-edge\n");

  const auto sentence = sentence_of(Fault::input, [&] { ingest({bad, folder_ / "gone.txt"}, {}, counts_); });

  EXPECT_SAYS(sentence, "gone.txt: no such file");
}

TEST_F(BadInput, InANodeListIsNamedByItsLine) {
  IngestOptions options;
  options.node_list = make("nodes.txt", "a\nb c\n");

  const auto sentence = sentence_of(Fault::input, [&] { read("a b\n", options); });

  EXPECT_SAYS(sentence, "nodes.txt:2: a node list has one name a line, found 2 columns");
}

TEST_F(BadInput, CannotMakeALineOfUnboundedLength) {
  const std::string endless(130 << 20, 'x');

  const auto sentence = sentence_of(Fault::input, [&] { read("1 2\n" + endless); });

  EXPECT_SAYS(sentence, "edges.txt:2: a line of more than 64 MiB");
}

TEST_F(BadInput, ArraysOfPairsHaveNoWeights) {
  NpyWriter out(folder_ / "pairs.npy", Dtype::u32, {1, 2});
  const std::uint32_t pair[] = {1, 2};
  out.write(pair, sizeof pair);
  out.commit();

  const auto sentence = sentence_of(Fault::input, [&] { ingest({folder_ / "pairs.npy"}, weighted(), counts_); });

  EXPECT_SAYS(sentence, "pairs in an array have no weights");
}

}  // namespace
}  // namespace gs
