#include <gtest/gtest.h>

#include "graphscale/files.hpp"

#include "tests/support/compressed.hpp"
#include "tests/support/folder.hpp"

namespace gs {
namespace {

std::vector<std::vector<std::string>> rows_of(const fs::path& path, Delimiter delimiter = Delimiter::detect) {
  TextTable table(path, delimiter);
  std::vector<std::vector<std::string>> rows;
  while (const auto* fields = table.next()) rows.emplace_back(fields->begin(), fields->end());
  return rows;
}

using Tables = InFolder;

TEST(Text, TheFirstLineDecidesTheDelimiter) {
  EXPECT_EQ(detect_delimiter("a b\tc,d"), Delimiter::tab);
  EXPECT_EQ(detect_delimiter("a b,c"), Delimiter::comma);
  EXPECT_EQ(detect_delimiter("a b"), Delimiter::blank);
}

std::vector<std::string> cut(Delimiter delimiter, std::string_view line) {
  std::vector<std::string_view> fields;
  FieldSplitter splitter(delimiter);
  EXPECT_EQ(splitter.split(line, fields), "") << line;
  return {fields.begin(), fields.end()};
}

TEST(Text, TabsKeepTheBytesBetweenThem) {
  EXPECT_EQ(cut(Delimiter::tab, " New York\t\"x\"\t"), (std::vector<std::string>{" New York", "\"x\"", ""}));
}

TEST(Text, RunsOfBlanksAreOneDelimiter) {
  EXPECT_EQ(cut(Delimiter::blank, "  1 \t 2   3 "), (std::vector<std::string>{"1", "2", "3"}));
}

TEST(Text, CommasFollowRfc4180) {
  EXPECT_EQ(cut(Delimiter::comma, "\"a, Inc.\",\"c\""), (std::vector<std::string>{"a, Inc.", "c"}));
  EXPECT_EQ(cut(Delimiter::comma, "\"say \"\"hi\"\"\",,\"\""), (std::vector<std::string>{"say \"hi\"", "", ""}));
  EXPECT_EQ(cut(Delimiter::comma, "3, 4"), (std::vector<std::string>{"3", "4"}));
  EXPECT_EQ(cut(Delimiter::comma, " New York , \" x \" ,"), (std::vector<std::string>{"New York", " x ", ""}));
}

TEST(Text, MisplacedQuotesAreErrors) {
  std::vector<std::string_view> fields;
  FieldSplitter splitter(Delimiter::comma);

  EXPECT_SAYS(splitter.split("\"a,b", fields), "never closed");
  EXPECT_SAYS(splitter.split("\"a\"b,c", fields), "text after a closing quote");
  EXPECT_SAYS(splitter.split("5\" pipe,c", fields), "inside the unquoted field");
}

TEST_F(Tables, TablesFromWindowsHaveNoMarksInTheirNames) {
  const fs::path path = make("win.tsv",
                             "\xEF\xBB\xBF"
                             "a\tb\r\nb\tc\r\nc\ta");

  EXPECT_EQ(rows_of(path), (std::vector<std::vector<std::string>>{{"a", "b"}, {"b", "c"}, {"c", "a"}}));
}

TEST_F(Tables, BlankLinesAndCommentsAreSkippedAndCounted) {
  TextTable table(make("c.txt", "# Directed\n\n%% konect\n  \t\n1 2\n # inner\n2 0\n"));

  ASSERT_NE(table.next(), nullptr);
  EXPECT_EQ(table.line(), 5);
  ASSERT_NE(table.next(), nullptr);
  EXPECT_EQ(table.line(), 7);
  EXPECT_EQ(table.next(), nullptr);
  EXPECT_EQ(table.skipped_lines(), 5);
}

TEST_F(Tables, ErrorsInATableNameFileAndLine) {
  TextTable table(make("t.csv", "a,b\n\"c,d\n"));
  table.next();

  EXPECT_SAYS(sentence_of(Fault::input, [&] { table.next(); }), "t.csv:2: a quote is opened and never closed");
  EXPECT_SAYS(sentence_of(Fault::input, [&] { table.fail("bad"); }), "t.csv:2: bad");
}

TEST_F(Tables, LinesLongerThanTheReadBufferStayWhole) {
  const std::string name(3000000, 'x');

  EXPECT_EQ(rows_of(make("t", "a " + name + "\n" + name + " b")),
            (std::vector<std::vector<std::string>>{{"a", name}, {name, "b"}}));
}

TEST_F(Tables, CompressedTablesAreTables) {
  EXPECT_EQ(rows_of(make("t", gzipped("a b\nc d\n"))), (std::vector<std::vector<std::string>>{{"a", "b"}, {"c", "d"}}));
}

TEST_F(Tables, AnEmptyTableHasNoRows) {
  EXPECT_TRUE(rows_of(make("t", "")).empty());
  EXPECT_TRUE(rows_of(make("t", "\xEF\xBB\xBF")).empty());
}

}  // namespace
}  // namespace gs
