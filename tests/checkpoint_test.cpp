#include "graphscale/checkpoint.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace gs {
namespace {

struct OwnedNames {
  std::vector<char> bytes;
  std::vector<Offset> bounds{0};
};

std::shared_ptr<NodeNames> make_names(const std::vector<std::string>& names) {
  const auto owned = std::make_shared<OwnedNames>();
  for (const std::string& name : names) {
    owned->bytes.insert(owned->bytes.end(), name.begin(), name.end());
    owned->bounds.push_back(Offset(owned->bytes.size()));
  }
  return names_of_bytes(owned->bytes, owned->bounds, owned);
}

/// A table whose rows are padded with values that must never be seen outside.
struct PaddedTable {
  PaddedTable(Offset rows, int dim) : stride(padded_stride(dim)), values(std::size_t(rows * stride), 777.0f) {
    for (Offset row = 0; row < rows; ++row)
      for (int c = 0; c < dim; ++c) values[std::size_t(row * stride + c)] = 0.1f * float(row) - 1.7e-7f * float(c * c);
    view = {values.data(), rows, dim, stride};
  }
  Offset stride;
  std::vector<float> values;
  Rows<float> view;
};

class Saved : public testing::Test {
 protected:
  Saved() { fs::create_directories(folder_); }
  ~Saved() override { fs::remove_all(folder_); }

  fs::path path(const std::string& name) const { return folder_ / name; }

  fs::path save(const std::vector<std::string>& names, int dim = 3) const {
    const PaddedTable table(Offset(names.size()), dim);
    fs::create_directories(path("run"));
    save_embeddings(path("run/embeddings"), table.view, *make_names(names));
    return path("run");
  }

  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
    return names;
  }

  static std::string sentence_of(Fault fault, const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.fault, fault) << error.what();
      return error.what();
    }
    return "";
  }

  void write(const fs::path& file, const std::string& bytes) const { std::ofstream(file, std::ios::binary) << bytes; }

  fs::path folder_ = fs::path(testing::TempDir()) /
                     cat("checkpoint_", ::getpid(), "_", testing::UnitTest::GetInstance()->current_test_info()->name());
};

void expect_same_values(Rows<const float> a, Rows<const float> b) {
  ASSERT_EQ(a.count, b.count);
  ASSERT_EQ(a.dim, b.dim);
  for (Offset row = 0; row < a.count; ++row)
    EXPECT_EQ(std::memcmp(a.row(row), b.row(row), std::size_t(a.dim) * sizeof(float)), 0) << "row " << row;
}

TEST_F(Saved, GivesBackValuesAndNamesWithoutPadding) {
  const std::vector<std::string> names{"New York", "007", "7", "na\xC3\xAFve", "", "\xFF\t\r"};
  const PaddedTable table(Offset(names.size()), 5);

  save_embeddings(path("embeddings"), table.view, *make_names(names));
  const Embeddings read = Embeddings::open(path("embeddings"));

  EXPECT_EQ(read.rows().stride, 5);
  expect_same_values(read.rows(), table.view);
  for (Offset row = 0; row < table.view.count; ++row) EXPECT_EQ(read.names().name(row), names[std::size_t(row)]);
  EXPECT_EQ(read.names().find("007"), RowId(1));
  EXPECT_EQ(read.names().find("7"), RowId(2));
}

TEST_F(Saved, OpensARunItsFolderOrTheArray) {
  const fs::path run = save({"a", "b"});
  fs::copy(run / "embeddings/names.txt", path("other_names.txt"));

  EXPECT_EQ(Embeddings::open(run).rows().count, 2);
  EXPECT_EQ(Embeddings::open(run / "embeddings").rows().count, 2);
  EXPECT_EQ(Embeddings::open(run / "embeddings/embeddings.npy").rows().count, 2);
  EXPECT_EQ(Embeddings::open(run / "embeddings/embeddings.npy", path("other_names.txt")).rows().count, 2);
}

TEST_F(Saved, HoldsATableWithoutRows) {
  save({});

  EXPECT_EQ(Embeddings::open(path("run")).rows().count, 0);
}

TEST_F(Saved, NamesWhatIsMissing) {
  fs::create_directories(path("empty"));
  const fs::path run = save({"a", "b"});
  fs::remove(run / "embeddings/names.txt");

  EXPECT_NE(sentence_of(Fault::input, [&] { Embeddings::open(path("nosuch")); }).find("nosuch"), std::string::npos);
  EXPECT_NE(sentence_of(Fault::input, [&] { Embeddings::open(path("empty")); }).find("embeddings.npy"),
            std::string::npos);
  EXPECT_NE(sentence_of(Fault::input, [&] { Embeddings::open(run); }).find("names.txt"), std::string::npos);
}

TEST_F(Saved, RefusesAsManyNamesAsRowsNotGiven) {
  const fs::path run = save({"a", "b", "c"});
  write(run / "embeddings/names.txt", "a\nb\n");

  const std::string sentence = sentence_of(Fault::input, [&] { Embeddings::open(run); });

  EXPECT_NE(sentence.find("2 names for 3 rows"), std::string::npos) << sentence;
}

TEST_F(Saved, TakesALastNameWithoutALineBreak) {
  const fs::path run = save({"a", "b"});
  write(run / "embeddings/names.txt", "a\nb");

  EXPECT_EQ(Embeddings::open(run).names().name(1), "b");
}

TEST_F(Saved, RefusesANameThatIsThereTwice) {
  const fs::path run = save({"a", "b", "c"});
  write(run / "embeddings/names.txt", "a\nb\na\n");

  const std::string sentence = sentence_of(Fault::input, [&] { Embeddings::open(run); });

  EXPECT_NE(sentence.find("names.txt:3: the name \"a\" is on line 1 already"), std::string::npos) << sentence;
}

TEST_F(Saved, RefusesAnArrayThatIsNoTableOfFloats) {
  write(path("names.txt"), "a\nb\n");
  const std::vector<double> doubles(6);
  NpyWriter wide(path("wide.npy"), Dtype::f64, {2, 3});
  wide.write(doubles.data(), 48);
  wide.commit();
  write_npy(path("flat.npy"), Span<const float>(std::vector<float>(2)));

  EXPECT_NE(sentence_of(Fault::input, [&] { Embeddings::open(path("wide.npy")); }), "");
  EXPECT_NE(sentence_of(Fault::input, [&] { Embeddings::open(path("flat.npy")); }), "");
}

TEST_F(Saved, RefusesACutArray) {
  const fs::path run = save({"a", "b"});
  fs::resize_file(run / "embeddings/embeddings.npy", fs::file_size(run / "embeddings/embeddings.npy") - 1);

  EXPECT_NE(sentence_of(Fault::input, [&] { Embeddings::open(run); }), "");
}

TEST_F(Saved, NeverSavesAValueThatIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    PaddedTable table(3, 37);
    table.view(1, 35) = bad;

    const std::string sentence = sentence_of(Fault::internal, [&] {
      save_embeddings(path("embeddings"), table.view, *make_names({"a", "b", "c"}));
    });

    EXPECT_NE(sentence.find("row 1 (node \"b\"), column 35"), std::string::npos) << sentence;
    EXPECT_TRUE(entries().empty());
  }
}

TEST_F(Saved, SavesTheLargestAndSmallestFloats) {
  PaddedTable table(1, 4);
  table.view(0, 0) = std::numeric_limits<float>::max();
  table.view(0, 1) = std::numeric_limits<float>::lowest();
  table.view(0, 2) = std::numeric_limits<float>::denorm_min();
  table.view(0, 3) = -0.0f;

  save_embeddings(path("embeddings"), table.view, *make_names({"a"}));

  expect_same_values(Embeddings::open(path("embeddings")).rows(), table.view);
}

TEST_F(Saved, RefusesToOpenAValueThatIsNotFinite) {
  write(path("names.txt"), "a\nb\n");
  const float values[4] = {1, 2, 3, std::nanf("")};
  NpyWriter array(path("x.npy"), Dtype::f32, {2, 2});
  array.write(values, sizeof values);
  array.commit();

  const std::string sentence = sentence_of(Fault::input, [&] { Embeddings::open(path("x.npy")); });

  EXPECT_NE(sentence.find("row 1 (node \"b\"), column 1"), std::string::npos) << sentence;
}

TEST_F(Saved, LeavesNothingWhereItCannotSave) {
  const PaddedTable table(2, 2);

  EXPECT_NE(sentence_of(Fault::output,
                        [&] {
                          save_embeddings(path("no/such"), table.view, *make_names({"a", "b"}));
                        }),
            "");
  EXPECT_NE(sentence_of(Fault::internal,
                        [&] {
                          save_embeddings(path("x"), table.view, *make_names({"a", "b\nc"}));
                        }),
            "");
  EXPECT_TRUE(entries().empty());
}

// ------------------------------------------------------------------------------------------------------------ export

using Export = Saved;

std::string percent_decoded(const std::string& text) {
  if (text == "%") return "";
  std::string name;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      name += text[at];
    } else {
      name += char(std::stoi(text.substr(at + 1, 2), nullptr, 16));
      at += 2;
    }
  }
  return name;
}

struct TextVectors {
  Offset rows = 0;
  int dim = 0;
  std::vector<std::string> names;
  std::vector<float> values;
};

/// What a reader makes of it that parts fields at single blanks.
TextVectors read_word2vec_text(const fs::path& path) {
  TextVectors read;
  std::ifstream in(path, std::ios::binary);
  std::string line;
  std::getline(in, line);
  std::istringstream(line) >> read.rows >> read.dim;
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::string field;
    std::getline(fields, field, ' ');
    read.names.push_back(field);
    while (std::getline(fields, field, ' ')) read.values.push_back(std::strtof(field.c_str(), nullptr));
  }
  return read;
}

const std::vector<std::string> kPlaces{"New York", "Los Angeles", "na\xC3\xAFve", "x",
                                       "100%",     "\xC2\xA0",    "New%20York"};

TEST_F(Export, TextReadsBackBitEqual) {
  const Embeddings saved = Embeddings::open(save({"a", "b", "na\xC3\xAFve"}, 4));

  export_embeddings(saved, ExportFormat::word2vec_text, path("out.txt"), false);
  const TextVectors read = read_word2vec_text(path("out.txt"));

  EXPECT_EQ(read.rows, 3);
  EXPECT_EQ(read.dim, 4);
  EXPECT_EQ(read.names, (std::vector<std::string>{"a", "b", "na\xC3\xAFve"}));
  ASSERT_EQ(read.values.size(), 12u);
  expect_same_values({read.values.data(), 3, 4, 4}, saved.rows());
}

TEST_F(Export, TextHasNineDigitsAsPrintfWritesThem) {
  const float values[4] = {0.1f, -1.0f / 3, 1e-40f, 3e38f};
  save_embeddings(path("e"), Rows<const float>(values, 1, 4, 4), *make_names({"a"}));

  export_embeddings(Embeddings::open(path("e")), ExportFormat::word2vec_text, path("out.txt"), false);

  char expected[200];
  std::snprintf(expected, sizeof expected, "1 4\na %.9g %.9g %.9g %.9g\n", double(values[0]), double(values[1]),
                double(values[2]), double(values[3]));
  EXPECT_EQ(read_text(path("out.txt")), expected);
}

TEST_F(Export, EscapedNamesComeBackAndStayApart) {
  const Embeddings saved = Embeddings::open(save(kPlaces));

  export_embeddings(saved, ExportFormat::word2vec_text, path("out.txt"), true);
  const TextVectors read = read_word2vec_text(path("out.txt"));

  EXPECT_EQ(read.names[0], "New%20York");
  EXPECT_EQ(read.names[2], "na\xC3\xAFve");
  ASSERT_EQ(read.names.size(), kPlaces.size());
  EXPECT_EQ(std::set<std::string>(read.names.begin(), read.names.end()).size(), kPlaces.size());
  for (std::size_t row = 0; row < kPlaces.size(); ++row) EXPECT_EQ(percent_decoded(read.names[row]), kPlaces[row]);
}

TEST_F(Export, EscapesEveryBlankAndControlCharacter) {
  const std::vector<std::string> blanks{" ",
                                        "\t",
                                        "\r",
                                        "\x7F",
                                        "",
                                        "\xC2\x85",
                                        "\xE1\x9A\x80",
                                        "\xE2\x80\x83",
                                        "\xE2\x80\xA8",
                                        "\xE2\x80\xAF",
                                        "\xE2\x81\x9F",
                                        "\xE3\x80\x80"};
  const Embeddings saved = Embeddings::open(save(blanks));

  export_embeddings(saved, ExportFormat::word2vec_text, path("out.txt"), true);
  const TextVectors read = read_word2vec_text(path("out.txt"));

  ASSERT_EQ(read.names.size(), blanks.size());
  for (std::size_t row = 0; row < blanks.size(); ++row) {
    EXPECT_EQ(read.names[row].find_first_not_of("%0123456789ABCDEF"), std::string::npos) << read.names[row];
    EXPECT_EQ(percent_decoded(read.names[row]), blanks[row]);
  }
}

TEST_F(Export, RefusesANameWithABlankUnlessEscaped) {
  const Embeddings saved = Embeddings::open(save(kPlaces));

  for (const ExportFormat format : {ExportFormat::word2vec_text, ExportFormat::word2vec_binary}) {
    const std::string sentence =
        sentence_of(Fault::input, [&] { export_embeddings(saved, format, path("out"), false); });

    EXPECT_NE(sentence.find("\"New York\""), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("--escape"), std::string::npos) << sentence;
    EXPECT_FALSE(fs::exists(path("out")));
  }
}

TEST_F(Export, BinaryHoldsNamesAndFloats) {
  const Embeddings saved = Embeddings::open(save({"a", "bb"}, 3));

  export_embeddings(saved, ExportFormat::word2vec_binary, path("out.bin"), false);

  const std::string bytes = read_text(path("out.bin"));
  ASSERT_EQ(bytes.size(), 4u + 2 + 12 + 1 + 3 + 12 + 1);
  EXPECT_EQ(bytes.substr(0, 6), "2 3\na ");
  EXPECT_EQ(std::memcmp(bytes.data() + 6, saved.rows().row(0), 12), 0);
  EXPECT_EQ(bytes.substr(18, 4), "\nbb ");
  EXPECT_EQ(std::memcmp(bytes.data() + 22, saved.rows().row(1), 12), 0);
  EXPECT_EQ(bytes.back(), '\n');
}

TEST_F(Export, SafetensorsHoldValuesAndRawNames) {
  const Embeddings saved = Embeddings::open(save({"New York", "b", "\xFF"}, 3));

  export_embeddings(saved, ExportFormat::safetensors, path("out.safetensors"), false);

  const std::string bytes = read_text(path("out.safetensors"));
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), 8);
  ASSERT_EQ(header_bytes % 8, 0u);
  const auto header = nlohmann::json::parse(bytes.substr(8, header_bytes));
  const std::string data = bytes.substr(8 + header_bytes);
  EXPECT_EQ(header["embeddings"]["dtype"], "F32");
  EXPECT_EQ(header["embeddings"]["shape"], nlohmann::json({3, 3}));
  EXPECT_EQ(header["embeddings"]["data_offsets"], nlohmann::json({0, 36}));
  EXPECT_EQ(header["names"]["dtype"], "U8");
  EXPECT_EQ(header["names"]["data_offsets"][1], data.size());
  EXPECT_EQ(std::memcmp(data.data(), saved.rows().data, 36), 0);
  EXPECT_EQ(data.substr(36), "New York\nb\n\xFF");
}

TEST_F(Export, NpyIsAFolderThatOpens) {
  const Embeddings saved = Embeddings::open(save({"a", "b"}));

  export_embeddings(saved, ExportFormat::npy, path("out"), false);

  expect_same_values(Embeddings::open(path("out")).rows(), saved.rows());
}

TEST_F(Export, LeavesNothingWhereItCannotWrite) {
  const Embeddings saved = Embeddings::open(save({"a", "b"}));

  for (const ExportFormat format :
       {ExportFormat::npy, ExportFormat::word2vec_text, ExportFormat::word2vec_binary, ExportFormat::safetensors}) {
    EXPECT_NE(sentence_of(Fault::output, [&] { export_embeddings(saved, format, path("no/such"), false); }), "");
    EXPECT_NE(sentence_of(Fault::output, [&] { export_embeddings(saved, format, "/dev/full", false); }), "");
  }
  EXPECT_EQ(entries(), std::vector<std::string>{"run"});
}

}  // namespace
}  // namespace gs
