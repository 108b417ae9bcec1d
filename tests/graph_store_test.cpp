#include <gtest/gtest.h>
#include <sys/resource.h>

#include <random>

#include "graphscale/graph.hpp"

#include "tests/support/built_graph.hpp"
#include "tests/support/folder.hpp"

namespace gs {
namespace {

using Store = InFolder;

BuiltGraph path_of(int nodes) {
  Pairs pairs;
  for (int i = 0; i + 1 < nodes; ++i) pairs.emplace_back(cat("n", i), cat("n", i + 1));
  return graph_of(pairs);
}

template <class T>
std::vector<T> copied(Span<const T> values) {
  return {values.begin(), values.end()};
}

void overwrite(const fs::path& file, Offset at, const std::string& bytes) {
  std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
  if (at < 0) out.seekp(at, std::ios::end);
  if (at >= 0) out.seekp(at);
  out << bytes;
}

// ---------------------------------------------------------------------------------------------------------- publishing

TEST_F(Store, AGraphIsReadBackAsItWasPublished) {
  const BuiltGraph graph = graph_of({{"a", "b"}, {"b", "c"}, {"c", "c"}}, true, {1, 2.5, 0}, {"naïve name"});

  publish(folder_ / "store", graph, "a test");

  const Graph opened = Graph::open(folder_ / "store");
  EXPECT_EQ(copied(opened.csr().offsets), graph.offsets);
  EXPECT_EQ(copied(opened.csr().targets), graph.targets);
  EXPECT_EQ(copied(opened.csr().weights), graph.weights);
  EXPECT_TRUE(opened.csr().directed);
  EXPECT_EQ(opened.names().size(), 4);
  EXPECT_EQ(opened.names().name(*opened.names().find("naïve name")), "naïve name");
  EXPECT_EQ(opened.copy_names().name_bytes, graph.name_bytes);
}

TEST_F(Store, IntegerNamesStayIntegers) {
  BuiltGraph graph = path_of(3);
  graph.name_bytes.clear(), graph.name_bounds.clear();
  graph.name_numbers = {18446744073709551615u, 0, 6221888200042590281u};

  publish(folder_ / "store", graph, "a test");

  const Graph opened = Graph::open(folder_ / "store");
  EXPECT_EQ(opened.names().name(0), "18446744073709551615");
  EXPECT_EQ(opened.names().find("6221888200042590281"), RowId(2));
  EXPECT_EQ(opened.copy_names().name_numbers, graph.name_numbers);
}

TEST_F(Store, AVersionSaysWhatItIs) {
  publish(folder_ / "store", path_of(4), "first");
  publish(folder_ / "store", path_of(5), "second");

  const VersionInfo info = Graph::open(folder_ / "store").info();

  EXPECT_EQ(info.id, "v0002");
  EXPECT_EQ(info.parent, "v0001");
  EXPECT_EQ(info.source, "second");
  EXPECT_EQ(info.num_nodes, 5);
  EXPECT_EQ(info.num_arcs, 8);
  EXPECT_TRUE(info.current);
  EXPECT_EQ(info.statistics.components, 1);
  EXPECT_EQ(info.content_hash.size(), 32u);
  EXPECT_EQ(info.created.size(), std::string("2000-01-01T00:00:00Z").size());
}

TEST_F(Store, EqualContentHasEqualHashesAndOtherContentAnother) {
  const std::string a = publish(folder_ / "store", path_of(4), "x").content_hash;
  const std::string again = publish(folder_ / "store", path_of(4), "y").content_hash;
  const std::string b = publish(folder_ / "store", path_of(5), "x").content_hash;

  EXPECT_EQ(a, again);
  EXPECT_NE(a, b);
}

TEST_F(Store, AnOpenGraphSurvivesANewVersion) {
  publish(folder_ / "store", path_of(4), "");
  const Graph opened = Graph::open(folder_ / "store");

  publish(folder_ / "store", path_of(9), "");

  EXPECT_EQ(opened.csr().num_nodes(), 4);
  EXPECT_EQ(opened.csr().offsets[4], 6);
  EXPECT_EQ(Graph::open(folder_ / "store", "v0001").csr().num_nodes(), 4);
}

TEST_F(Store, PublishersAtOnceLoseNothing) {
  on_threads(4, [&](int i) { publish(folder_ / "store", path_of(10 + i), cat("publisher ", i)); });

  std::vector<std::string> ids, sources;
  for (const VersionInfo& info : versions(folder_ / "store"))
    ids.push_back(info.id), sources.push_back(info.source + info.damage);
  std::sort(sources.begin(), sources.end());

  EXPECT_EQ(ids, (std::vector<std::string>{"v0001", "v0002", "v0003", "v0004"}));
  EXPECT_EQ(sources, (std::vector<std::string>{"publisher 0", "publisher 1", "publisher 2", "publisher 3"}));
}

TEST_F(Store, ADiskThatFillsUpLeavesTheStoreAsItWas) {
  publish(folder_ / "store", path_of(4), "");
  const BuiltGraph large = path_of(100000);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{65536, before.rlim_max};

  setrlimit(RLIMIT_FSIZE, &small);
  const std::string full = sentence_of(Fault::output, [&] { publish(folder_ / "store", large, ""); });
  const std::string first = sentence_of(Fault::output, [&] { publish(folder_ / "new", large, ""); });
  setrlimit(RLIMIT_FSIZE, &before);

  EXPECT_SAYS(full, "offsets.npy: writing failed: File too large");
  EXPECT_EQ(listing(), std::vector<std::string>{"store"});
  EXPECT_EQ(versions(folder_ / "store").size(), 1u);
  EXPECT_EQ(Graph::open(folder_ / "store").csr().num_nodes(), 4);
}

TEST_F(Store, PlacesThatAreNoStoreAreNotPublishedInto) {
  fs::create_directory(folder_ / "home");
  make("home/letter.txt", "dear");

  for (const fs::path& place : {folder_ / "home", fs::path("/dev/full"), folder_ / "none" / "store"})
    EXPECT_SAYS(sentence_of(Fault::output, [&] { publish(place, path_of(3), ""); }), place.string());
}

// ------------------------------------------------------------------------------------------------ versions and
// rollback

TEST_F(Store, VersionsAreListedOldestFirst) {
  for (int nodes = 3; nodes < 6; ++nodes) publish(folder_ / "store", path_of(nodes), "");

  const std::vector<VersionInfo> list = versions(folder_ / "store");

  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].num_nodes, 3);
  EXPECT_EQ(list[2].num_nodes, 5);
  EXPECT_FALSE(list[0].current);
  EXPECT_TRUE(list[2].current);
}

TEST_F(Store, RollbackGoesToTheParentOrToTheOneNamed) {
  for (int nodes = 3; nodes < 6; ++nodes) publish(folder_ / "store", path_of(nodes), "");

  EXPECT_EQ(rollback(folder_ / "store", "").id, "v0002");
  EXPECT_EQ(Graph::open(folder_ / "store").csr().num_nodes(), 4);
  EXPECT_EQ(rollback(folder_ / "store", "v0003").id, "v0003");
  EXPECT_EQ(Graph::open(folder_ / "store").csr().num_nodes(), 5);
}

TEST_F(Store, ANumberIsNeverUsedTwiceAfterARollback) {
  publish(folder_ / "store", path_of(3), "");
  publish(folder_ / "store", path_of(4), "");
  rollback(folder_ / "store", "");

  const VersionInfo info = publish(folder_ / "store", path_of(5), "");

  EXPECT_EQ(info.id, "v0003");
  EXPECT_EQ(info.parent, "v0001");
}

TEST_F(Store, VersionsThatAreNotThereAreRefusedWithTheListOfThose) {
  publish(folder_ / "store", path_of(3), "");

  for (const char* wrong : {"v0002", "v1", "0001", "../store/v0001", "v0001/"})
    EXPECT_SAYS(sentence_of(Fault::input, [&] { rollback(folder_ / "store", wrong); }), "there are: v0001");
  EXPECT_SAYS(sentence_of(Fault::input, [&] { rollback(folder_ / "store", ""); }), "v0001 has no parent");
}

TEST_F(Store, ADamagedVersionIsListedButNotRolledBackTo) {
  publish(folder_ / "store", path_of(3), "");
  publish(folder_ / "store", path_of(4), "");
  make("store/v0001/meta.json", "{");

  const std::vector<VersionInfo> list = versions(folder_ / "store");

  EXPECT_SAYS(list[0].damage, "v0001/meta.json: is damaged");
  EXPECT_EQ(list[1].damage, "");
  sentence_of(Fault::input, [&] { rollback(folder_ / "store", "v0001"); });
  EXPECT_EQ(Graph::open(folder_ / "store").info().id, "v0002");
}

// -------------------------------------------------------------------------------------------------------------- damage

TEST_F(Store, PlacesThatAreNoStoreAreNamed) {
  fs::create_directory(folder_ / "empty");

  EXPECT_SAYS(sentence_of(Fault::input, [&] { Graph::open(folder_ / "none"); }), "none: there is no such graph store");
  EXPECT_SAYS(sentence_of(Fault::input, [&] { Graph::open(folder_ / "empty"); }), "empty: is not a graph store");
  EXPECT_SAYS(sentence_of(Fault::input, [&] { Graph::open(make("file", "x")); }), "file: is not a graph store");
}

TEST_F(Store, ACurrentThatNamesNothingIsExplained) {
  publish(folder_ / "store", path_of(3), "");
  make("store/CURRENT", "v0007\n");

  EXPECT_SAYS(sentence_of(Fault::input, [&] { Graph::open(folder_ / "store"); }),
              "CURRENT: names \"v0007\", which is not in the store; there are: v0001");
}

TEST_F(Store, AMissingCurrentIsMendedByARollback) {
  publish(folder_ / "store", path_of(3), "");
  fs::remove(folder_ / "store" / "CURRENT");

  EXPECT_SAYS(sentence_of(Fault::input, [&] { Graph::open(folder_ / "store"); }), "has no current version");
  rollback(folder_ / "store", "v0001");
  EXPECT_EQ(Graph::open(folder_ / "store").csr().num_nodes(), 3);
}

TEST_F(Store, CutMissingAndForeignFilesAreNamed) {
  publish(folder_ / "store", path_of(300), "");
  const fs::path version = folder_ / "store" / "v0001";
  const auto refusal = [&] { return sentence_of(Fault::input, [&] { Graph::open(folder_ / "store"); }); };

  for (const char* name : {"offsets.npy", "targets.npy", "name_bytes.npy", "name_bounds.npy"}) {
    const std::string bytes = bytes_of(version / name);
    fs::resize_file(version / name, bytes.size() / 2);
    EXPECT_SAYS(refusal(), cat(name, ": has ", bytes.size() / 2, " bytes, but meta.json says ", bytes.size()));
    fs::remove(version / name);
    EXPECT_SAYS(refusal(), cat(name, ": is missing"));
    make(cat("store/v0001/", name), bytes);
  }
  EXPECT_EQ(Graph::open(folder_ / "store").csr().num_nodes(), 300);
}

TEST_F(Store, DamagedValuesAreNamed) {
  publish(folder_ / "store", graph_of({{"a", "b"}, {"b", "c"}}, false, {1, 2}), "");
  const fs::path version = folder_ / "store" / "v0001";
  const auto refusal_after = [&](const char* name, Offset from_end, const std::string& bytes) {
    const std::string before = bytes_of(version / name);
    overwrite(version / name, -from_end, bytes);
    const std::string sentence = sentence_of(Fault::input, [&] { Graph::open(folder_ / "store"); });
    make(cat("store/v0001/", name), before);
    return sentence;
  };

  EXPECT_SAYS(refusal_after("offsets.npy", 8, "\x7F"), "offsets.npy: ends with 127, but there are 4");
  EXPECT_SAYS(refusal_after("offsets.npy", 16, "\x7F"), "offsets.npy: value 3 is 4, less than the one before (127)");
  EXPECT_SAYS(refusal_after("offsets.npy", 32, "\x01"), "offsets.npy: begins with 1 instead of 0");
  EXPECT_SAYS(refusal_after("targets.npy", 4, "\x03"), "targets.npy: arc 3 leads to row 3, but there are 3");
  EXPECT_SAYS(refusal_after("weights.npy", 1, "\xFF"), "weights.npy: arc 3 weighs");
  EXPECT_SAYS(refusal_after("name_bounds.npy", 8, "\x7F"), "name_bounds.npy: ends with 127");
}

TEST_F(Store, AForeignOrNewerMetaIsRefusedNamingBothFormats) {
  publish(folder_ / "store", path_of(3), "");
  const std::string meta = bytes_of(folder_ / "store" / "v0001" / "meta.json");
  const auto refusal = [&](const std::string& text) {
    make("store/v0001/meta.json", text);
    return sentence_of(Fault::input, [&] { Graph::open(folder_ / "store"); });
  };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    return std::string(meta).replace(meta.find(from), from.size(), to);
  };

  EXPECT_SAYS(refusal("[]"), "was not written by GraphScale");
  EXPECT_SAYS(refusal("{\"name\": \"x\"}"), "was not written by GraphScale");
  EXPECT_SAYS(refusal(meta.substr(0, meta.size() / 2)), "is damaged");
  EXPECT_SAYS(refusal(replaced("\"format\": 1", "\"format\": 3")), "format 3 is newer than 2");
  EXPECT_SAYS(refusal(replaced("\"format\": 1", "\"format\": 0")), "format 0 is none of GraphScale's");
  EXPECT_SAYS(refusal(replaced("\"num_nodes\": 3", "\"num_nodes\": 4")), "has 4 values; 5 are expected");
  EXPECT_SAYS(refusal(replaced("\"num_nodes\": 3", "\"num_nodes\": -1")), "num_nodes is -1");
  EXPECT_SAYS(refusal(replaced("\"num_arcs\": 4", "\"num_arcs\": \"4\"")), "num_arcs is \"4\"");
  EXPECT_SAYS(refusal(replaced("v0001", "v0002")), "is of version \"v0002\", but lies in v0001");
}

TEST_F(Store, RandomlyDamagedStoresOpenOrAreRefusedButNeverCrash) {
  publish(folder_ / "store", graph_of({{"a", "b"}, {"b", "c"}, {"c", "d"}}, false, {1, 2, 3}), "");
  const fs::path version = folder_ / "store" / "v0001";
  const std::vector<std::string> names{"meta.json",   "offsets.npy",    "targets.npy",
                                       "weights.npy", "name_bytes.npy", "name_bounds.npy"};
  std::mt19937 random(1);
  int refused = 0;

  for (int round = 0; round < 600; ++round) {
    const std::string& name = names[round % names.size()];
    const std::string before = bytes_of(version / name);
    overwrite(version / name, Offset(random() % before.size()), std::string(1, char(random())));
    try {
      const Graph graph = Graph::open(folder_ / "store");
      for (Offset row = 0; row < graph.csr().num_nodes(); ++row) graph.names().name(row), graph.csr().degree(row);
    } catch (const Error& error) {
      EXPECT_EQ(int(error.fault), int(Fault::input)) << error.what();
      ++refused;
    }
    make(cat("store/v0001/", name), before);
  }

  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace gs
