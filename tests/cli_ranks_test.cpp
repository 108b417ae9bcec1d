// `train` with many ranks: as threads of one process and as processes that a launcher started.
#include "tests/support/launched.hpp"
#include "tests/support/program.hpp"
#include "tests/support/ranks.hpp"

namespace gs {
namespace {

using Json = nlohmann::json;

class RanksCommand : public WithProgram {
 protected:
  RanksCommand() { succeed("graph generate sbm --nodes 200 --edges 2000 --out s"); }

  std::vector<Json> metrics(const std::string& run) const {
    std::vector<Json> lines;
    std::istringstream text(bytes_of(folder_ / run / "metrics.jsonl"));
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    return lines;
  }

  void expect_finite(const Vectors& vectors) const {
    for (const auto& [name, vector] : vectors)
      for (const float value : vector) ASSERT_TRUE(std::isfinite(value)) << name;
  }

  const std::string train_ = "train --graph s --device cpu --dim 8 --threads 1 ";
};

TEST_F(RanksCommand, AsThreadsWriteOneRunInTheFormatOfOneRank) {
  succeed(train_ + "--out one --epochs 2");
  const Outcome outcome = succeed(train_ + "--out four --epochs 2 --ranks 4");

  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(bytes_of(folder_ / "four/embeddings/names.txt"), bytes_of(folder_ / "one/embeddings/names.txt"));
  EXPECT_EQ(vectors("four/embeddings").size(), 200u);
  expect_finite(vectors("four/embeddings"));
  const Json end = metrics("four").back();
  EXPECT_EQ(end["end"], "complete");
  EXPECT_EQ(end["walks"], 4000);
  EXPECT_EQ(end["pairs"], metrics("one").back()["pairs"]);
  for (const char* stage : {"sample", "fetch", "compute", "push"})
    EXPECT_GT(end["stages"][stage]["busy_s"], 0) << stage;
  const Json& moved = end["exchange"];
  EXPECT_GT(moved["requested_rows"], moved["unique_rows"]);
  EXPECT_EQ(moved["unique_rows"].get<Offset>(),
            moved["local_rows"].get<Offset>() + moved["remote_rows"].get<Offset>() + moved["head_rows"].get<Offset>());
  EXPECT_GT(moved["gradient_bytes"], 0);
  EXPECT_EQ(moved["received_bytes"].get<Offset>(),
            moved["id_bytes"].get<Offset>() + moved["row_bytes"].get<Offset>() + moved["gradient_bytes"].get<Offset>());
}

TEST_F(RanksCommand, CountInEveryLineOfMetricsWhatWasExchangedSinceTheLast) {
  succeed(train_ + "--out r --epochs 2 --ranks 3 --log-steps 5");

  std::vector<Json> lines = metrics("r");
  std::erase_if(lines, [](const Json& line) { return line.contains("checkpoint"); });
  ASSERT_GT(lines.size(), 3u);
  for (const auto& [name, total] : lines.back()["exchange"].items()) {
    Offset sum = 0;
    for (std::size_t i = 0; i + 1 < lines.size(); ++i) sum += lines[i]["exchange"][name].get<Offset>();
    EXPECT_EQ(sum, total.get<Offset>()) << name;
  }
  for (const Json& line : lines) EXPECT_TRUE(line["loss"].is_null() || line["loss"] > 0) << line;
}

TEST_F(RanksCommand, SayEverythingOnce) {
  const std::string log = succeed(train_ + "--out r --epochs 1 --ranks 4").err;

  for (const char* kind : {" config: model: ", " graph: ", " device: ", " ranks: 4 by local", " train: 100 %",
                           " stage sample ", " stage fetch ", " stage compute ", " stage push ", " stages overlapped ",
                           " save: 100 %", " embeddings in r/embeddings"})
    EXPECT_EQ(count_of(log, kind), 1) << kind << "\n" << log;
}

TEST_F(RanksCommand, GiveTheBitsOfOneRankWhereDeterministic) {
  const std::string exact = train_ + "--epochs 1 --deterministic --staleness 0 --method rows ";
  succeed(exact + "--out one");
  succeed(exact + "--out three --ranks 3");

  EXPECT_EQ(bytes_of(folder_ / "three/embeddings/embeddings.npy"), bytes_of(folder_ / "one/embeddings/embeddings.npy"));
}

// ------------------------------------------------------------------------------------------------------ every option

class RanksWith : public RanksCommand, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Options, RanksWith,
                         testing::Values("--ranks 8 --compute 0 --storage 1-7", "--ranks 3 --compute 1,2 --storage 0",
                                         "--topology partitioned", "--topology uva", "--placement partition",
                                         "--placement partition --topology partitioned", "--method allreduce",
                                         "--compression fp16", "--compression int8", "--compression topk",
                                         "--compression onebit", "--row-type fp16", "--row-type bf16", "--dtype fp16",
                                         "--dtype bf16", "--optimizer momentum", "--optimizer adagrad",
                                         "--optimizer adam --learning-rate 0.01", "--staleness 0",
                                         "--staleness 8 --learning-rate 0.01",
                                         "--replicated-rows 20 --replicate-every 3", "--negatives-from global"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

TEST_P(RanksWith, TrainsToALowerLoss) {
  const std::string options = GetParam();
  const std::string ranks = says(options, "--ranks") ? "" : "--ranks 2 ";
  succeed(train_ + "--out r --epochs 3 --log-steps 16 " + ranks + options);

  const std::vector<Json> lines = metrics("r");
  ASSERT_GE(lines.size(), 3u);
  const double first = lines.front()["loss"], last = lines.back()["loss"];
  EXPECT_TRUE(std::isfinite(last));
  EXPECT_LT(last, first);
  EXPECT_EQ(lines.back()["end"], "complete");
  EXPECT_EQ(vectors("r/embeddings").size(), 200u);
  expect_finite(vectors("r/embeddings"));
}

// ----------------------------------------------------------------------------------------------- more ranks than work

class FieldReportRanks : public RanksCommand {
 protected:
  FieldReportRanks() {
    make("triangle.txt", "a b\nb c\nc a\n");
    succeed("graph ingest triangle.txt --out triangle");
  }
};

TEST_F(FieldReportRanks, O20ATriangleOnEightRanksGivesThreeRows) {
  const std::string tiny = "train --graph triangle --device cpu --dim 4 --threads 1 --epochs 2 ";
  succeed(tiny + "--out one");
  for (const char* options :
       {"", "--placement partition", "--topology partitioned", "--method allreduce", "--staleness 4", "--epochs 0",
        "--deterministic --staleness 0", "--compute 7 --storage 6", "--replicated-rows 3"}) {
    SCOPED_TRACE(options);
    const std::string epochs =
        says(options, "--epochs") ? "train --graph triangle --device cpu --dim 4 --threads 1 " : tiny;
    succeed(epochs + "--out eight --overwrite --ranks 8 " + options);

    EXPECT_EQ(bytes_of(folder_ / "eight/embeddings/names.txt"), bytes_of(folder_ / "one/embeddings/names.txt"));
    EXPECT_EQ(fs::file_size(folder_ / "eight/embeddings/embeddings.npy"),
              fs::file_size(folder_ / "one/embeddings/embeddings.npy"));
    EXPECT_EQ(vectors("eight/embeddings").size(), 3u);
    expect_finite(vectors("eight/embeddings"));
  }
}

TEST_F(FieldReportRanks, O20EveryWalkStaysWithOneRanksNodes) {
  std::string lines = "hub hub 1\n";  // the only arc that is walked, at the node of the highest degree: row 0, rank 0
  for (int i = 0; i < 20; ++i) lines += cat("hub leaf", i, " 0\n");
  make("star.txt", lines);
  succeed("graph ingest star.txt --weighted --self-loops keep --out star");

  for (const char* options : {"", "--topology partitioned", "--placement partition"}) {
    SCOPED_TRACE(options);
    const Outcome outcome = succeed(
        cat("train --graph star --device cpu --dim 4 --threads 1 --epochs 1 --out r --overwrite --ranks 8 ", options));

    EXPECT_SAYS(outcome.err, "nodes never trained: 20");
    EXPECT_EQ(vectors("r/embeddings").size(), 21u);
    expect_finite(vectors("r/embeddings"));
  }
}

// -------------------------------------------------------------------------------------------------- launch, refused

TEST_F(RanksCommand, ThatContradictTheirLauncherAreRefusedInOneLine) {
  const std::string tcp = "RANK=0 WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=20001";
  const std::string mpi = "OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=0";
  const std::pair<std::string, std::pair<std::string, std::string>> cases[] = {
      {tcp, {"--ranks 4", "run.ranks 4 contradicts the launcher that set WORLD_SIZE, which started 3 ranks"}},
      {mpi, {"--ranks 4", "run.ranks 4 contradicts mpirun, which started 3 ranks"}},
      {tcp, {"--transport local", "exchange.transport local: its ranks are threads of one process"}},
      {"RANK=3 WORLD_SIZE=3", {"", "RANK: \"3\" is no whole number from 0 to 2"}},
      {"WORLD_SIZE=3", {"", "RANK is not set"}},
      {"", {"--ranks 2 --transport tcp", "set RANK and WORLD_SIZE"}},
      {"", {"--ranks 2 --compute 0,2", "ranks.compute"}},
      {"", {"--ranks 2 --storage 2", "ranks.storage"}},
  };
  for (const auto& [environment, options_and_part] : cases) {
    const auto& [options, part] = options_and_part;
    SCOPED_TRACE(cat(environment, " ", options));
    EXPECT_SAYS(refusal(2, train_ + "--quiet --out r " + options, environment), part);
    EXPECT_EQ(count_of(bytes_of(folder_ / ".err"), "\n"), 1) << bytes_of(folder_ / ".err");
    EXPECT_FALSE(fs::exists(folder_ / "r"));
  }
}

TEST_F(RanksCommand, RefuseAFolderBeforeTheyTrain) {
  succeed(train_ + "--out r --epochs 0");

  EXPECT_SAYS(refusal(7, train_ + "--out r --ranks 3"), "\"r\" holds the embeddings of an earlier run");
  EXPECT_EQ(count_of(bytes_of(folder_ / ".err"), "error: "), 1);
}

}  // namespace
}  // namespace gs
