// Checkpoints that were damaged, mixed up or made by hand, and stores: what is wrong is named, and what is sound is
// used. Checkpoints of any layout are read alike.
#include <sys/resource.h>

#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/manifest.hpp"
#include "tests/support/program.hpp"

namespace gs {
namespace {

using Json = nlohmann::ordered_json;

class Damaged : public WithProgram {
 protected:
  Damaged() {
    succeed("graph generate sbm --nodes 60 --edges 400 --out s");
    succeed(train("r", "--optimizer adagrad"));
    fs::remove_all(folder_ / "r/embeddings");
    const std::vector<fs::path> folders = list_checkpoints(folder_ / "r");
    newest_ = folders.at(0), older_ = folders.at(1);
  }

  static std::string train(const std::string& run, const std::string& options, int epochs = 1) {
    return cat("train --graph s --device cpu --threads 1 --dim 8 --deterministic --step-walks 50 --epochs ", epochs,
               " --staleness 0 --method rows --checkpoint.every_steps 3 --out ", run, " ", options);
  }

  /// The checkpoint that is read, and what is said meanwhile.
  std::pair<fs::path, std::string> read() const {
    testing::internal::CaptureStderr();
    fs::path found;
    try {
      found = newest_sound(folder_ / "r", 1)->folder();
    } catch (const Error& error) {
      EXPECT_EQ(int(error.fault), int(Fault::input)) << error.what();
    }
    return {found, testing::internal::GetCapturedStderr()};
  }

  static std::vector<std::string> files_of(const fs::path& checkpoint) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(checkpoint)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  void write(const fs::path& path, const std::string& bytes) const { make(path.lexically_relative(folder_), bytes); }

  /// After each kind of damage to each file: the file is named, and the checkpoint before is read.
  void expect_named(const std::function<bool(const fs::path&)>& damage, const std::string& what) {
    for (const std::string& name : files_of(newest_)) {
      const std::string bytes = bytes_of(newest_ / name);
      if (damage(newest_ / name)) {
        const auto [used, said] = read();
        EXPECT_EQ(used, older_) << what << " " << name;
        EXPECT_SAYS(said, name == "manifest.json" ? newest_.filename().string() : name);
        EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
      }
      write(newest_ / name, bytes);
    }
    EXPECT_EQ(read(), (std::pair{newest_, std::string()}));
  }

  /// The manifest with a change and the checksum of that.
  void change_manifest(const std::function<void(Json&)>& change) const {
    Json json = Json::parse(manifest_);
    change(json);
    write(newest_ / "manifest.json", with_checksum(json));
  }

  /// What is said of a changed manifest, in one line, with little memory.
  std::string refusal_after(const std::function<void(Json&)>& change) {
    if (manifest_.empty()) manifest_ = bytes_of(newest_ / "manifest.json");
    change_manifest(change);
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    const std::string said = sentence_of(Fault::input, [&] { Checkpoint(newest_).verify(1); });
    getrusage(RUSAGE_SELF, &after);
    EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 << 10) << "KiB";
    EXPECT_FALSE(says(said, "\n")) << said;
    EXPECT_SAYS(said, newest_.filename().string());
    return said;
  }

  fs::path newest_, older_;
  std::string manifest_;
};

// ------------------------------------------------------------------------------------------------------------- files

TEST_F(Damaged, AFlippedBitIsNamedWithItsFile) {
  std::mt19937 random(1);
  for (int round = 0; round < 5; ++round)
    expect_named(
        [&](const fs::path& file) {
          std::string bytes = bytes_of(file);
          bytes[random() % bytes.size()] ^= char(1 << random() % 7);
          return write(file, bytes), true;
        },
        "a bit of");
}

TEST_F(Damaged, ACutFileIsNamed) {
  expect_named([](const fs::path& file) { return fs::resize_file(file, fs::file_size(file) / 2), true; }, "half of");
  expect_named([](const fs::path& file) { return fs::resize_file(file, 0), true; }, "nothing of");
}

TEST_F(Damaged, AMissingFileIsNamed) {
  expect_named([](const fs::path& file) { return fs::remove(file); }, "without");
}

TEST_F(Damaged, AFolderInAFilesPlaceIsNamed) {
  for (const std::string& name : files_of(newest_)) {
    const std::string bytes = bytes_of(newest_ / name);
    fs::remove(newest_ / name), fs::create_directory(newest_ / name);
    EXPECT_EQ(read().first, older_) << name;
    fs::remove(newest_ / name), write(newest_ / name, bytes);
  }
}

TEST_F(Damaged, AFileOfAnotherCheckpointIsNamed) {
  for (const std::string& name : files_of(newest_)) {
    const std::string bytes = bytes_of(newest_ / name), other = bytes_of(older_ / name);
    if (bytes == other) continue;  // as names are
    write(newest_ / name, other);
    const auto [used, said] = read();
    EXPECT_EQ(used, older_) << name;
    EXPECT_SAYS(said, name == "manifest.json" ? newest_.filename().string() : name);
    write(newest_ / name, bytes);
  }
}

TEST_F(Damaged, ForeignFilesAndShardsOfAnotherLayoutAreLeftAlone) {
  succeed(train("three", "--optimizer adagrad --run.ranks 3"));
  const fs::path theirs = list_checkpoints(folder_ / "three").at(0);
  for (const std::string& name : files_of(theirs))
    if (!fs::exists(newest_ / name)) fs::copy(theirs / name, newest_ / name);
  for (const char* name : {"finished.npy", "relations.txt", "notes", ".hidden"}) write(newest_ / name, "x");
  fs::create_directory(newest_ / "folder");

  EXPECT_EQ(read(), (std::pair{newest_, std::string()}));
  succeed("export r --out e --format word2vec");
}

TEST_F(Damaged, WhereNoneIsSoundResumeAndExportRefuse) {
  for (const fs::path& folder : list_checkpoints(folder_ / "r")) fs::resize_file(folder / "shard-0000.vectors.npy", 99);
  const std::string before = bytes_of(folder_ / "r/metrics.jsonl");

  for (const char* command : {"export r --out e --format word2vec", "train --graph s --out r --resume"}) {
    const std::string sentence = refusal(3, command);
    EXPECT_SAYS(sentence, "checkpoints is sound; the newest: ");
    EXPECT_SAYS(sentence, cat(newest_.filename().string(), "/shard-0000.vectors.npy: has 99 bytes"));
  }
  EXPECT_FALSE(fs::exists(folder_ / "e"));
  EXPECT_EQ(bytes_of(folder_ / "r/metrics.jsonl"), before);
}

TEST_F(Damaged, ARunGoesOnAtTheNextOlderAndEndsTheSame) {
  const std::string options = "--optimizer adagrad --checkpoint.keep 1 --resume";
  succeed(train("whole", options));
  fs::resize_file(newest_ / "names.txt", 3);

  const Outcome resumed = succeed(train("r", options));

  EXPECT_SAYS(resumed.err, cat("warning: r/checkpoints/", newest_.filename().string(), "/names.txt: has 3 bytes"));
  EXPECT_SAYS(resumed.err, cat("resume: from r/checkpoints/", older_.filename().string()));
  EXPECT_EQ(bytes_of(folder_ / "r/embeddings/embeddings.npy"), bytes_of(folder_ / "whole/embeddings/embeddings.npy"));
  EXPECT_EQ(list_checkpoints(folder_ / "r"), (std::vector{newest_}));
}

TEST_F(Damaged, ANewerCheckpointThatIsDamagedCostsNoSoundOne) {
  const fs::path late = newest_.parent_path() / "step-000000999999";
  fs::create_directory(late);
  write(late / "manifest.json", "{}");

  succeed(train("r", "--optimizer adagrad --checkpoint.keep 1 --resume", 2));

  const std::unique_ptr<Checkpoint> found = newest_sound(folder_ / "r");
  EXPECT_TRUE(found->state().complete);
  EXPECT_GT(found->folder(), newest_);
}

TEST_F(Damaged, ANewerCheckpointWithADamagedShardCostsNoSoundOne) {
  const fs::path late = newest_.parent_path() / "step-000000999999";
  fs::copy(newest_, late, fs::copy_options::recursive);
  fs::resize_file(late / "shard-0000.vectors.npy", 99);

  const Outcome resumed = succeed(train("r", "--optimizer adagrad --checkpoint.keep 1 --resume", 2));

  EXPECT_SAYS(resumed.err, "step-000000999999/shard-0000.vectors.npy: has 99 bytes");
  const std::unique_ptr<Checkpoint> found = newest_sound(folder_ / "r");
  EXPECT_TRUE(found->state().complete);
  EXPECT_GT(found->folder(), newest_);
}

TEST_F(Damaged, HalfALineOfMetricsIsCutBeforeTheRunGoesOn) {
  std::ofstream(folder_ / "r/metrics.jsonl", std::ios::app) << "{\"step\": 1";
  fs::remove_all(newest_);

  succeed(train("r", "--optimizer adagrad --resume"));

  std::ifstream lines(folder_ / "r/metrics.jsonl");
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(Json::accept(line)) << line;
}

// ---------------------------------------------------------------------------------------------------------- manifests

TEST_F(Damaged, AManifestThatNamesOtherPlacesIsRefused) {
  for (const char* name : {"../config.json", "/etc/passwd", "", ".", "..", "a/b", "a\\b", ".hidden"}) {
    EXPECT_SAYS(refusal_after([&](Json& json) { json["files"][0]["name"] = name; }), "is no plain file name");
    EXPECT_SAYS(refusal_after([&](Json& json) { json["shards"][0]["name"] = name; }), "is no plain file name");
    EXPECT_SAYS(refusal_after([&](Json& json) { json["tables"][0] = name; }), "lists no shard-0000.");
  }
  EXPECT_SAYS(refusal_after([&](Json& json) { json["tables"][0] = "vectors/../../x"; }), "lists no shard-0000.");
}

TEST_F(Damaged, AManifestWithHugeCountsIsRefused) {
  constexpr Offset kHuge = Offset{1} << 60;
  EXPECT_SAYS(refusal_after([&](Json& json) { json["graph"]["nodes"] = kHuge; }), "at most ");
  EXPECT_SAYS(refusal_after([&](Json& json) { json["graph"]["dense_rows"] = kHuge; }), "at most ");
  EXPECT_SAYS(refusal_after([&](Json& json) { json["graph"]["nodes"] = 4000000000; }), "its shards have 60 rows");
  EXPECT_SAYS(refusal_after([&](Json& json) { json["shards"][0]["rows"] = kHuge; }), "rows");
  EXPECT_SAYS(refusal_after([&](Json& json) { json["files"][0]["bytes"] = kHuge; }),
              "bytes, manifest.json says 115292");
  EXPECT_SAYS(refusal_after([&](Json& json) { json["part"] = kHuge; }), "\"part\" 1152921504606846976 is too large");
  EXPECT_SAYS(refusal_after([&](Json& json) { json["part"] = 1; }), "part");
  EXPECT_SAYS(refusal_after([&](Json& json) { json["steps"] = 1e300; }), "\"steps\" is no count");
  EXPECT_SAYS(refusal_after([&](Json& json) { json["steps"] = -1; }), "\"steps\" is no count");
  EXPECT_SAYS(refusal_after([&](Json& json) { json["walks"] = 18446744073709551615u; }), "\"walks\" is no count");
  EXPECT_SAYS(refusal_after([&](Json& json) {
                Json& shards = json["shards"];
                for (int i = 0; i < 1000; ++i) shards.push_back(shards[0]);
              }),
              "its shards have 60060 rows");
}

TEST_F(Damaged, AManifestOfWrongTypesIsRefused) {
  const Json wrong[] = {"x", -1, 1.5, true, nullptr, Json::array(), Json::object(), {{"a", 1}}};
  if (manifest_.empty()) manifest_ = bytes_of(newest_ / "manifest.json");
  const Json manifest = Json::parse(manifest_);
  for (const auto& [name, value] : manifest.items()) {
    if (name == "checksum" || name == "program") continue;
    for (const Json& other : wrong)
      if (other.type() != value.type() && !(name == "shards" && other.is_array())) {
        EXPECT_NE(refusal_after([&](Json& json) { json[name] = other; }), "") << name << " " << other;
      }
    EXPECT_SAYS(refusal_after([&](Json& json) { json.erase(name); }), cat("has no \"", name, "\""));
  }
  EXPECT_SAYS(refusal_after([&](Json& json) { json["tables"] = Json::array(); }), "has 0 columns of vectors");
  EXPECT_SAYS(refusal_after([&](Json& json) { json["shards"] = Json::array(); }), "its shards have 0 rows");
  EXPECT_SAYS(refusal_after([&](Json& json) { json["files"] = Json::array(); }), "lists no config.json");
}

TEST_F(Damaged, AManifestThatNestsDeeplyIsRefused) {
  const std::string manifest = bytes_of(newest_ / "manifest.json"), deep(200000, '[');
  const std::size_t first = manifest.find('{') + 1;
  write(newest_ / "manifest.json", cat("{\"deep\":", deep, std::string(deep.size(), ']'), ",", manifest.substr(first)));

  const auto [used, said] = read();

  EXPECT_EQ(used, older_);
  EXPECT_SAYS(said, "manifest.json: its contents do not match its checksum");
}

TEST_F(Damaged, AManifestOfANewerFormatIsRefused) {
  EXPECT_SAYS(refusal_after([&](Json& json) { json["format"] = 2; }),
              cat("is of format 2, this program (", kVersion, ") reads up to 1: use a newer graphscale"));
}

TEST_F(Damaged, TheProgramSaysSoInOneLineWithStatus3) {
  refusal_after([&](Json& json) { json["files"][0]["name"] = "../../../s/CURRENT"; });
  const std::string checkpoint = newest_.lexically_relative(folder_);

  for (const std::string& command :
       {cat("export ", checkpoint, " --out e --format word2vec"), cat("query ", checkpoint, " 1")}) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.status, 3) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

// ------------------------------------------------------------------------------------------------------------ layouts

class Layouts : public WithProgram {
 protected:
  Layouts() {
    succeed("graph generate sbm --nodes 90 --edges 600 --out s");
    for (const auto& [run, options] : runs_)
      succeed(cat("train --graph s --device cpu --threads 1 --dim 8 --deterministic --staleness 0 --method rows ",
                  "--epochs 1 --out ", run, " ", options));
  }

  std::string newest(const std::string& run) const {
    return list_checkpoints(folder_ / run).at(0).lexically_relative(folder_);
  }
  std::string exported(const std::string& what, const std::string& options = "") const {
    succeed(cat("export ", what, " --format word2vec --out e ", options));
    return bytes_of(folder_ / "e");
  }

  const std::map<std::string, std::string> runs_ = {
      {"one", ""}, {"three", "--run.ranks 3"}, {"parted", "--run.ranks 3 --store.placement partition"}};
};

TEST_F(Layouts, OfOneRunHaveTheSameVectors) {
  const std::string expected = exported("one");
  make("edges", "1\t2\n5\t7\n9\t4\n");
  make("pairs", "1\t80\n5\t77\n9\t64\n");
  const auto scores = [&](const std::string& what) {
    return succeed(cat("eval link ", what, " --positive edges --negative pairs")).out;
  };
  const std::string expected_scores = scores("one");

  for (const auto& [run, options] : runs_) {
    EXPECT_TRUE(exported(newest(run)) == expected) << run << ": a checkpoint";
    EXPECT_EQ(scores(newest(run)), expected_scores) << run;
    fs::remove_all(folder_ / run / "embeddings");
    EXPECT_TRUE(exported(run) == expected) << run << ": a run that was killed before it saved its embeddings";
  }
}

TEST_F(Layouts, SomeNamesAreExportedInTheirOrder) {
  make("names", "7\n3\n89\n");

  for (const auto& [run, options] : runs_) {
    const std::string some = exported(newest(run), "--names names"), all = exported(newest(run));
    EXPECT_EQ(some.substr(0, 6), "3 8\n7 ") << run;
    std::string expected = "3 8\n";
    for (const char* name : {"\n7 ", "\n3 ", "\n89 "}) {
      const std::size_t at = all.find(name) + 1;
      expected += all.substr(at, all.find('\n', at) + 1 - at);
    }
    EXPECT_EQ(some, expected) << run;
  }
  make("names", "7\nnobody\n3\n");
  EXPECT_SAYS(refusal(3, cat("export ", newest("three"), " --format word2vec --out f --names names")),
              "names:2: \"nobody\" is no node");
  EXPECT_FALSE(fs::exists(folder_ / "f"));
}

// ------------------------------------------------------------------------------------------------------------- stores

class DamagedStore : public WithProgram {};

TEST_F(DamagedStore, IsRefusedByFileInOneLine) {
  make("triples.tsv", "a\tr\tb\nb\tq\tc\nc\tr\ta\n");
  succeed("graph ingest triples.tsv --triples --out s");
  const fs::path version = folder_ / "s/v0001";

  for (const auto& entry : fs::directory_iterator(version)) {
    const std::string name = entry.path().filename(), bytes = bytes_of(entry.path());
    for (const char* damage : {"deleted", "cut", "emptied", "folder"}) {
      fs::remove(version / name);
      const std::string what = damage;
      if (what == "cut") make(cat("s/v0001/", name), bytes.substr(0, bytes.size() / 2));
      if (what == "emptied") make(cat("s/v0001/", name), "");
      if (what == "folder") fs::create_directory(version / name);
      for (const char* command : {"graph info s", "train --graph s --out r --device cpu"}) {
        EXPECT_SAYS(refusal(3, command), name) << damage;
      }
      EXPECT_FALSE(fs::exists(folder_ / "r"));
      fs::remove(version / name);
      make(cat("s/v0001/", name), bytes);
    }
  }
  succeed("graph info s");
}

}  // namespace
}  // namespace gs
