// `train` of every kind of model, and what its run's folder then holds.
#include "tests/support/program.hpp"

namespace gs {
namespace {

class ModelsCommand : public WithProgram {
 protected:
  ModelsCommand() {
    std::string triples;
    for (int i = 0; i < 40; ++i) {
      triples += cat("p", i, "\tknows\tp", (i + 1) % 40, "\n");
      triples += cat("p", i, "\tis next to\tp", (i + 39) % 40, "\n");
    }
    make("triples.tsv", triples);
    succeed("graph ingest triples.tsv --triples --out kg");
    succeed("graph generate sbm --nodes 80 --edges 400 --out s");
  }

  const std::string small_ = " --device cpu --threads 1 --dim 8 --quiet ";
};

TEST_F(ModelsCommand, OfKnowledgeGraphsSaveRelationsBesideNodes) {
  for (const char* kind : {"transe", "distmult", "complex", "rotate"})
    for (const char* how : {"", "--ranks 3", "--optimizer sgd", "--optimizer adam"}) {
      SCOPED_TRACE(cat(kind, " ", how));
      succeed(cat("train --graph kg --out r --overwrite --epochs 2 --kind ", kind, " ", how, small_));

      EXPECT_EQ(vectors("r").size(), 40u);
      const Vectors relations = vectors("r/relations");
      ASSERT_EQ(relations.size(), 2u);
      EXPECT_EQ(relations.at("is next to").size(), 8u);
    }
}

TEST_F(ModelsCommand, WithReciprocalRelationsNameThem) {
  succeed("train --graph kg --out r --epochs 1 --kind complex --reciprocal true" + small_);

  const Vectors relations = vectors("r/relations");
  EXPECT_EQ(relations.size(), 4u);
  EXPECT_EQ(relations.count("knows (inverse)"), 1u);
}

TEST_F(ModelsCommand, OfNodesAloneLeaveNoRelationsOfAnEarlierRun) {
  succeed("train --graph kg --out r --epochs 1 --kind distmult" + small_);
  succeed("train --graph kg --out r --overwrite --epochs 1 --kind deepwalk" + small_);

  EXPECT_EQ(visible(), (std::vector<std::string>{"kg", "r", "s", "triples.tsv"}));
  EXPECT_FALSE(fs::exists(folder_ / "r/relations"));
}

TEST_F(ModelsCommand, LineOfBothOrdersPutsUnitVectorsSideBySide) {
  for (const char* how : {"", "--ranks 2", "--method rows"}) {
    SCOPED_TRACE(how);
    succeed(cat("train --graph s --out r --overwrite --epochs 5 --kind line ", how, small_));

    for (const auto& [name, vector] : vectors("r")) {
      ASSERT_EQ(vector.size(), 8u);
      for (int half = 0; half < 2; ++half) {
        double squares = 0;
        for (std::size_t c = 0; c < 4; ++c)
          squares += double(vector[4 * std::size_t(half) + c]) * vector[4 * std::size_t(half) + c];
        ASSERT_NEAR(squares, 1, 1e-5) << name << ", half " << half;
      }
    }
  }
}

TEST_F(ModelsCommand, Node2vecOfEqualBiasesIsDeepwalk) {
  const std::string rest = " --epochs 1 --deterministic" + small_;
  succeed("train --graph s --out a --kind node2vec" + rest);
  succeed("train --graph s --out b --kind deepwalk" + rest);
  succeed("train --graph s --out c --kind node2vec --q 0.1" + rest);

  EXPECT_EQ(bytes_of(folder_ / "a/embeddings/embeddings.npy"), bytes_of(folder_ / "b/embeddings/embeddings.npy"));
  EXPECT_NE(bytes_of(folder_ / "a/embeddings/embeddings.npy"), bytes_of(folder_ / "c/embeddings/embeddings.npy"));
}

TEST_F(ModelsCommand, RefuseWhatTheirKindCannotBe) {
  const auto refused = [&](int status, const char* options) {
    return refusal(status, cat("train --out r --device cpu ", options));
  };
  EXPECT_SAYS(refused(3, "--graph s --kind transe"), "the graph has no relations; ingest it with --triples");
  EXPECT_SAYS(refused(2, "--graph kg --kind complex --dim 7"), "choose an even number");
  EXPECT_SAYS(refused(2, "--graph s --kind line --dim 7"), "model.order both gives each order half");
  EXPECT_SAYS(refused(2, "--graph s --kind line --walk-length 41"), "an even number, at most 64");
  EXPECT_SAYS(refused(2, "--graph s --kind deepwalk --shared-negatives 300"), "at most 256");
  EXPECT_SAYS(refused(2, "--graph kg --kind transe --topology partitioned"), "only walks travel");
  EXPECT_SAYS(refused(2, "--graph s --kind node2vec --p 0"), "--p: 0 is out of range; expected 1e-06 to 1000000");
  EXPECT_FALSE(fs::exists(folder_ / "r"));
}

}  // namespace
}  // namespace gs
