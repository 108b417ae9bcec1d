#include <gtest/gtest.h>

#include "graphscale/files.hpp"

#include "tests/support/folder.hpp"

namespace gs {
namespace {

std::string npy_bytes(const std::string& dict, const std::string& values, char version = 1) {
  const std::size_t prefix = version == 1 ? 10 : 12;
  std::string header = dict;
  header.append(64 - (prefix + header.size() + 1) % 64, ' ') += '\n';
  std::string out = std::string("\x93NUMPY") + version + '\0' + char(header.size() & 255) + char(header.size() >> 8);
  if (version > 1) out += std::string(2, '\0');
  return out + header + values;
}

using Npy = InFolder;

TEST_F(Npy, WhatIsWrittenAsNpyReadsBackEqual) {
  const std::vector<float> values{1.5f, -0.0f, 3e38f};

  write_npy<float>(folder_ / "a.npy", values);

  const NpyArray array(folder_ / "a.npy");
  EXPECT_EQ(array.shape(), std::vector<Offset>{3});
  EXPECT_EQ(std::vector<float>(array.values<float>().begin(), array.values<float>().end()), values);
}

TEST_F(Npy, ATwoDimensionalArrayKeepsItsShape) {
  const std::vector<std::int64_t> values{1, 2, 3, 4, 5, 6};
  NpyWriter out(folder_ / "a.npy", Dtype::i64, {2, 3});
  out.write(values.data(), 48);
  out.commit();

  const NpyArray array(folder_ / "a.npy");

  EXPECT_EQ(array.rows(), 2);
  EXPECT_EQ(array.columns(), 3);
  EXPECT_EQ(array.values<std::int64_t>()[5], 6);
}

TEST_F(Npy, AnEmptyArrayIsAnArray) {
  write_npy<RowId>(folder_ / "a.npy", Span<const RowId>());

  EXPECT_EQ(NpyArray(folder_ / "a.npy").values<RowId>().size, 0);
}

TEST_F(Npy, EveryNpyVersionAndKeyOrderIsRead) {
  const std::string dict = "{\"shape\": (2,), 'fortran_order':False,\n'descr': '<u4'}", values(8, '\1');

  for (const char version : {1, 2, 3})
    EXPECT_EQ(NpyArray(make("v.npy", npy_bytes(dict, values, version))).values<RowId>()[1], 0x01010101u);
}

TEST_F(Npy, NpyHeadersThatLieAreRefusedByName) {
  const std::string order = "'fortran_order': False, ";
  const auto refusal = [&](const std::string& dict, std::size_t bytes) {
    return sentence_of(Fault::input, [&] { NpyArray(make("a.npy", npy_bytes(dict, std::string(bytes, '\0')))); });
  };

  EXPECT_SAYS(refusal("{'descr': '<f4', " + order + "'shape': (3,), }", 8), "is cut short");
  EXPECT_SAYS(refusal("{'descr': '<f4', " + order + "'shape': (3,), }", 16), "but its shape and dtype say 12");
  EXPECT_SAYS(refusal("{'descr': '>f4', " + order + "'shape': (2,), }", 8), "dtype '>f4' is not read");
  EXPECT_SAYS(refusal("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", 16), "Fortran order");
  EXPECT_SAYS(refusal("{'descr': '<f4', " + order + "'shape': (), }", 4), "0 dimensions");
  EXPECT_SAYS(refusal("{'descr': '<f4', " + order + "'shape': (1, 1, 1), }", 4), "3 dimensions");
  EXPECT_SAYS(refusal("{'descr': '<f4', " + order + "'shape': (4611686018427387904, 4), }", 16), "is cut short");
  EXPECT_SAYS(refusal("{'descr': '<f4', " + order + "'shape': (99999999999999999999,), }", 16), "64 bits");
  EXPECT_SAYS(refusal("{'descr': '<f4', " + order + "'shape': (1000000000000, 0), }", 0), "no columns");
  EXPECT_SAYS(refusal("{'descr': '<f4', " + order + "'shape': (-1,), }", 0), "not a number");
  EXPECT_SAYS(refusal("{'descr': '<f4', 'shape': (1,), }", 4), "missing");
  EXPECT_SAYS(refusal("{'descr': [('a', '<f4')], " + order + "'shape': (1,), }", 4), "structured");
  EXPECT_SAYS(refusal("{'descr': '<f4', " + order + "'shape': (1,), } x", 4), "after the closing brace");
}

TEST_F(Npy, ValuesThatAreNotAlignedAreRefused) {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } \n";
  const std::string bytes = std::string("\x93NUMPY\1\0", 8) + char(header.size()) + '\0' + header + "1234";
  ASSERT_NE((10 + header.size()) % 4, 0u);

  EXPECT_SAYS(sentence_of(Fault::input, [&] { NpyArray(make("a.npy", bytes)); }), "not aligned to 4 bytes");
}

TEST_F(Npy, AnotherDtypeThanAskedForIsRefused) {
  write_npy<float>(folder_ / "a.npy", std::vector<float>{1});

  const NpyArray array(folder_ / "a.npy");

  EXPECT_SAYS(sentence_of(Fault::input, [&] { array.values<std::int32_t>(); }), "dtype is <f4; <i4 is expected");
}

TEST_F(Npy, AnNpyFileWithMissingRowsIsNotLeftBehind) {
  sentence_of(Fault::internal, [&] {
    NpyWriter out(folder_ / "a.npy", Dtype::f32, {2});
    out.write("1234", 4);
    out.commit();
  });

  EXPECT_TRUE(listing().empty());
}

}  // namespace
}  // namespace gs
