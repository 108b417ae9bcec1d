// Versions of a store that others write, move and damage while it is read, and stores of earlier programs.
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/built_graph.hpp"
#include "tests/support/folder.hpp"

namespace gs {
namespace {

using StoreVersions = InFolder;

BuiltGraph ring_of(int nodes) {
  Pairs pairs;
  for (int i = 0; i < nodes; ++i) pairs.emplace_back(cat("n", i), cat("n", (i + 1) % nodes));
  return graph_of(pairs);
}

/// Arcs of `graph` by name, each with its weight or relation.
std::vector<std::string> arcs_of(const Graph& graph) {
  const Csr csr = graph.csr();
  std::vector<std::string> arcs;
  for (Offset row = 0; row < csr.num_nodes(); ++row)
    for (Offset arc = csr.offsets[row]; arc < csr.offsets[row + 1]; ++arc) {
      std::string text = cat(graph.names().name(row), " ", graph.names().name(csr.targets[arc]));
      if (!csr.weights.empty()) text += cat(" ", csr.weights[arc]);
      if (!csr.relations.empty()) text += " " + graph.relation_names().name(csr.relations[arc]);
      arcs.push_back(text);
    }
  std::sort(arcs.begin(), arcs.end());
  return arcs;
}

// ---------------------------------------------------------------------------------------------------- earlier programs

TEST_F(StoreVersions, AStoreOfFormat1OpensAsItWasWritten) {
  const Graph graph = Graph::open(fs::path(GS_TEST_DATA) / "store_v1" / "weighted");

  EXPECT_EQ(arcs_of(graph), (std::vector<std::string>{"anna bob 1.5", "bob anna 1.5", "bob chloé 2", "chloé bob 2",
                                                      "chloé chloé 0.25"}));
  EXPECT_FALSE(graph.csr().directed);
  EXPECT_EQ(graph.names().find("chloé"), RowId(1));
  EXPECT_EQ(graph.info().id, "v0001");
  EXPECT_EQ(graph.info().statistics.self_loops, 1);
}

TEST_F(StoreVersions, AStoreOfNumbersOpensAsItWasWritten) {
  const Graph graph = Graph::open(fs::path(GS_TEST_DATA) / "store_v1" / "numbers");

  EXPECT_EQ(arcs_of(graph), (std::vector<std::string>{"0 18446744073709551615", "7 0"}));
  EXPECT_TRUE(graph.csr().directed);
}

TEST_F(StoreVersions, AStoreOfTriplesOpensAsItWasWritten) {
  const Graph graph = Graph::open(fs::path(GS_TEST_DATA) / "store_v1" / "triples");

  EXPECT_EQ(arcs_of(graph), (std::vector<std::string>{"anna bob knows", "anna bob likes", "bob chloé knows"}));
  EXPECT_EQ(graph.relation_names().name(0), "knows");
}

TEST_F(StoreVersions, ANewerFormatIsRefusedInOneLine) {
  publish(folder_ / "store", ring_of(3), "");
  std::string meta = bytes_of(folder_ / "store/v0001/meta.json");
  meta.replace(meta.find("\"format\": 1"), 11, "\"format\": 7");
  make("store/v0001/meta.json", meta);

  const std::string refusal = sentence_of(Fault::input, [&] { Graph::open(folder_ / "store"); });

  EXPECT_EQ(refusal, cat((folder_ / "store/v0001/meta.json").string(),
                         ": format 7 is newer than 2, the newest that this program reads; use a newer GraphScale"));
}

// -------------------------------------------------------------------------------------------------- readers and
// writers

TEST_F(StoreVersions, ReadersSeeWholeVersionsWhileOthersPublishAndRollBack) {
  constexpr int kReaders = 3, kRounds = 12;
  publish(folder_ / "store", ring_of(10), "10");
  std::atomic<bool> done{false};
  std::atomic<int> opened{0}, broken{0};

  on_threads(1 + kReaders, [&](int thread) {
    if (thread == 0) {
      for (int round = 1; round <= kRounds; ++round) {
        publish(folder_ / "store", ring_of(10 + round), cat(10 + round), 1);
        if (round % 3 == 0) rollback(folder_ / "store", "");
      }
      while (opened < kReaders) std::this_thread::yield();  // however late they were started
      done = true;
      return;
    }
    while (!done) {
      const Graph graph = Graph::open(folder_ / "store");
      const Offset nodes = graph.csr().num_nodes();
      const bool whole = cat(nodes) == graph.info().source && graph.csr().num_arcs() == 2 * nodes &&
                         graph.names().find(cat("n", nodes - 1)) && !graph.names().find(cat("n", nodes));
      broken += whole ? 0 : 1;
      ++opened;
    }
  });

  EXPECT_GE(opened, kReaders);
  EXPECT_EQ(broken, 0);
}

TEST_F(StoreVersions, AnOpenGraphKeepsAVersionThatIsRolledBackAndRemoved) {
  publish(folder_ / "store", ring_of(10), "");
  publish(folder_ / "store", ring_of(500), "");
  const Graph graph = Graph::open(folder_ / "store");

  rollback(folder_ / "store", "");
  fs::remove_all(folder_ / "store/v0002");

  EXPECT_EQ(arcs_of(graph).size(), 1000u);
  EXPECT_TRUE(graph.names().find("n499"));
  EXPECT_EQ(Graph::open(folder_ / "store").csr().num_nodes(), 10);
}

// ---------------------------------------------------------------------------------------------------- what is trusted

TEST_F(StoreVersions, ACurrentThatLeadsOutOfTheStoreIsRefused) {
  publish(folder_ / "store", ring_of(3), "");
  publish(folder_ / "other", ring_of(4), "");

  for (const std::string& name : {std::string("../other/v0001"), (folder_ / "other/v0001").string(), std::string("."),
                                  std::string("v0001/../../other/v0001"), std::string("v0001\0x", 7)}) {
    make("store/CURRENT", name + "\n");
    EXPECT_SAYS(sentence_of(Fault::input, [&] { Graph::open(folder_ / "store"); }), "which is not in the store");
  }
}

class StoreMeta : public InFolder {
 protected:
  StoreMeta() {
    publish(folder_ / "store", ring_of(3), "");
    meta_ = bytes_of(folder_ / "store/v0001/meta.json");
  }
  std::string replaced(const std::string& from, const std::string& to) const {
    return std::string(meta_).replace(meta_.find(from), from.size(), to);
  }
  /// The refusal of a meta.json where `to` stands for `from`.
  std::string refusal(const std::string& from, const std::string& to) {
    make("store/v0001/meta.json", replaced(from, to));
    return sentence_of(Fault::input, [&] { Graph::open(folder_ / "store"); });
  }

 private:
  std::string meta_;
};

TEST_F(StoreMeta, NamesOfFilesElsewhereAreRefused) {
  for (const char* elsewhere : {"../../other/targets.npy", "/etc/passwd"})
    EXPECT_SAYS(refusal("targets.npy", elsewhere), cat("names a file outside its folder, ", elsewhere));
}

TEST_F(StoreMeta, AParentElsewhereIsNotFollowed) {
  publish(folder_ / "other", ring_of(4), "");
  make("store/v0001/meta.json", replaced("\"parent\": \"\"", "\"parent\": \"../other/v0001\""));

  EXPECT_SAYS(sentence_of(Fault::input, [&] { rollback(folder_ / "store", ""); }), "has no version '../other/v0001'");
}

TEST_F(StoreMeta, NumbersThatAreNotWholeOrFarTooLargeAreRefused) {
  for (const char* number : {"-1", "1.5", "1e300", "4294967295", "18446744073709551615", "true", "null"})
    EXPECT_SAYS(refusal("\"num_nodes\": 3", cat("\"num_nodes\": ", number)), "num_nodes is ");
  for (const char* number : {"-6", "9223372036854775808", "6.0"})
    EXPECT_SAYS(refusal("\"num_arcs\": 6", cat("\"num_arcs\": ", number)), "num_arcs is ");
  EXPECT_SAYS(refusal("\"num_arcs\": 6", "\"num_arcs\": 9223372036854775807"), "ends with 6");
  EXPECT_SAYS(refusal("\"format\": 1", "\"format\": 4294967297"), "format 4294967297 is newer");
  EXPECT_SAYS(refusal("\"components\": 1", "\"components\": 1e300"), "components is ");
}

TEST_F(StoreMeta, DeepNestingIsRefused) {
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  EXPECT_SAYS(refusal("\"format\": 1", "\"format\": " + deep), "format is [[");
  EXPECT_SAYS(refusal("\"num_nodes\": 3", "\"num_nodes\": " + deep), "num_nodes");
}

TEST_F(StoreMeta, AnEmptyArrayOfOffsetsIsRefused) {
  NpyWriter(folder_ / "store/v0001/offsets.npy", Dtype::i64, {0}).commit();
  const auto bytes = fs::file_size(folder_ / "store/v0001/offsets.npy");

  EXPECT_SAYS(refusal("\"offsets.npy\": 160", cat("\"offsets.npy\": ", bytes)), "has 0 values; 4 are expected");
}

}  // namespace
}  // namespace gs
