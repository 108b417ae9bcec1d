#include "graphscale/config.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace gs {
namespace {

std::string sentence_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::usage);
    return error.what();
  }
  return "";
}

class ConfigFile : public testing::Test {
 protected:
  ~ConfigFile() override { std::remove(path_.c_str()); }

  Config read(const std::string& json, const std::vector<Setting>& settings = {}) {
    std::ofstream(path_, std::ios::binary) << json;
    return read_config(path_, settings);
  }
  /// The sentence that `json` is refused with, less the file's name; empty where it is accepted.
  std::string refusal(const std::string& json) {
    const std::string sentence = sentence_of([&] { read(json); });
    EXPECT_EQ(sentence.substr(0, path_.size()), path_);
    return sentence.substr(std::min(sentence.size(), path_.size()));
  }

  std::string path_ = testing::TempDir() + "config_" + std::to_string(::getpid()) + "_" +
                      testing::UnitTest::GetInstance()->current_test_info()->name() + ".json";
};

class ConfigFlags : public testing::Test {
 protected:
  static Config read(const std::string& name, const std::string& value) {
    return read_config("", {{name, value, "--" + name}});
  }
  static std::string refusal(const std::string& name, const std::string& value) {
    return sentence_of([&] { read(name, value); });
  }
};

TEST_F(ConfigFile, OverridesDefaultsAndIsOverriddenBySettings) {
  const Config config =
      read(R"({"model": {"dim": 64, "window": 5}, "training": {"seed": 7}})", {{"window", "3", "--window"}});

  EXPECT_EQ(config.model.dim, 64);
  EXPECT_EQ(config.model.window, 3);
  EXPECT_EQ(config.training.seed, 7u);
  EXPECT_EQ(config.sampler.walk_length, SamplerConfig{}.walk_length);
}

TEST_F(ConfigFile, MayBeMadeOnWindows) {
  const Config config = read("\xEF\xBB\xBF{\r\n  \"model\": {\r\n    \"dim\": 64\r\n  }\r\n}\r\n");

  EXPECT_EQ(config.model.dim, 64);
}

TEST_F(ConfigFile, KeepsEveryDigitOfASeed) {
  EXPECT_EQ(read(R"({"training": {"seed": 18446744073709551615}})").training.seed, ~std::uint64_t{0});
  EXPECT_EQ(read(R"({"training": {"seed": 9007199254740993}})").training.seed, 9007199254740993u);
}

TEST_F(ConfigFile, TakesAnIntegerForANumber) {
  EXPECT_EQ(read(R"({"training": {"learning_rate": 1}})").training.learning_rate, 1.0);
}

TEST_F(ConfigFile, TakesABooleanInWords) {
  EXPECT_TRUE(read(R"({"training": {"deterministic": "Yes"}})").training.deterministic);
  EXPECT_TRUE(read(R"({"training": {"deterministic": true}})").training.deterministic);
}

TEST_F(ConfigFile, RefusesAnotherType) {
  EXPECT_EQ(refusal(R"({"model": {"dim": "64"}})"),
            ": /model/dim: \"64\" is a string; expected an integer, written without quotes");
  EXPECT_EQ(refusal(R"({"model": {"dim": 64.5}})"), ": /model/dim: 64.5 is not an integer");
  EXPECT_EQ(refusal(R"({"model": {"dim": 64.0}})"), ": /model/dim: 64.0 is not an integer");
  EXPECT_EQ(refusal(R"({"model": {"dim": true}})"), ": /model/dim: true is a boolean; expected an integer");
  EXPECT_EQ(refusal(R"({"model": {"dim": null}})"), ": /model/dim: null; expected an integer");
  EXPECT_EQ(refusal(R"({"model": {"dim": [64]}})"), ": /model/dim: an array; expected an integer");
  EXPECT_EQ(refusal(R"({"model": {"dim": {}}})"), ": /model/dim: an object; expected an integer");
  EXPECT_EQ(refusal(R"({"model": {"kind": 3}})"), ": /model/kind: 3 is a number; expected a string");
  EXPECT_EQ(refusal(R"({"training": {"deterministic": 1}})"),
            ": /training/deterministic: 1 is a number; expected true or false");
}

TEST_F(ConfigFile, RefusesWhatIsOutOfRange) {
  EXPECT_EQ(refusal(R"({"model": {"dim": 0}})"), ": /model/dim: 0 is out of range; expected 1 to 2048 columns");
  EXPECT_EQ(refusal(R"({"training": {"seed": -1}})"),
            ": /training/seed: -1 is out of range; expected 0 to 18446744073709551615");
  EXPECT_EQ(refusal(R"({"training": {"seed": 18446744073709551616}})"),
            ": /training/seed: 18446744073709551616 is out of range; expected 0 to 18446744073709551615");
  EXPECT_NE(refusal(R"({"training": {"learning_rate": 1e999}})"), "");
}

TEST_F(ConfigFile, NamesTheNearestOptionForAMisspeltKey) {
  EXPECT_EQ(refusal(R"({"training": {"lerning_rate": 0.5}})"),
            ": /training/lerning_rate: no such option; did you mean training.learning_rate?");
  EXPECT_EQ(refusal(R"({"model": {"lerning_rate": 0.5}})"),
            ": /model/lerning_rate: no such option; did you mean training.learning_rate?");
}

TEST_F(ConfigFile, NamesTheSectionThatAMisplacedKeyBelongsTo) {
  EXPECT_EQ(refusal(R"({"model": {"walk_length": 10}})"),
            ": /model/walk_length: no such option; walk_length belongs to section sampler: write sampler.walk_length");
  EXPECT_EQ(refusal(R"({"dim": 10})"), ": /dim: no such option; dim belongs to section model: write model.dim");
}

TEST_F(ConfigFile, NamesTheNearestSection) {
  EXPECT_EQ(refusal(R"({"modle": {}})"), ": /modle: no such section; did you mean /model?");
  EXPECT_EQ(refusal(R"({"xyz": {}})"),
            ": /xyz: no such section; the sections are model, sampler, training, run, ranks, store, exchange, start, "
            "checkpoint, "
            "eval, metrics");
}

TEST_F(ConfigFile, RefusesAKeyGivenTwice) {
  EXPECT_EQ(refusal(R"({"model": {"dim": 3, "window": 2, "dim": 3}})"),
            ": /model/dim: the key is there twice; keep one of them");
  EXPECT_EQ(refusal(R"({"model": {}, "run": {}, "model": {}})"), ": /model: the key is there twice; keep one of them");
}

TEST_F(ConfigFile, MustBeAnObjectOfObjects) {
  EXPECT_EQ(refusal("[]"), ": /: an array; expected an object of sections");
  EXPECT_EQ(refusal(R"({"model": 3})"), ": /model: 3; expected an object of options");
}

TEST_F(ConfigFile, NamesLineAndColumnOfASyntaxError) {
  EXPECT_EQ(refusal("{\n  \"model\": {\"dim\": 3,}\n}").substr(0, 7), ":2:22: ");
  EXPECT_NE(refusal(""), "");
  EXPECT_NE(refusal("{} {}"), "");
  EXPECT_NE(refusal(R"({"training": {"learning_rate": NaN}})"), "");
}

TEST_F(ConfigFile, HasNoComments) {
  EXPECT_NE(refusal("{\n  // faster\n  \"model\": {}\n}").find("JSON has no comments"), std::string::npos);
}

TEST_F(ConfigFile, ThatIsMissingIsAnInputError) {
  try {
    read_config(path_, {});
    FAIL() << "a missing file was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
  }
}

TEST_F(ConfigFile, WrittenByToJsonReadsBackAsTheSameConfiguration) {
  Config config;
  config.model.dim = 77;
  config.model.negatives = 0.1;
  config.training.seed = 18446744073709551557u;
  config.training.deterministic = true;
  config.run.device = "cpu";

  const Config again = read(to_json(config));

  EXPECT_EQ(to_json(again), to_json(config));
  EXPECT_EQ(again.training.seed, config.training.seed);
  EXPECT_EQ(again.model.negatives, config.model.negatives);
}

TEST_F(ConfigFlags, AreKnownByFullNameAndByLastPart) {
  EXPECT_EQ(read("sampler.walk_length", "12").sampler.walk_length, 12);
  EXPECT_EQ(read("walk-length", "12").sampler.walk_length, 12);
  EXPECT_EQ(read("walk_length", "12").sampler.walk_length, 12);
}

TEST_F(ConfigFlags, KeepEveryDigitOfASeed) {
  EXPECT_EQ(read("seed", "18446744073709551615").training.seed, ~std::uint64_t{0});
}

TEST_F(ConfigFlags, RefuseWhatIsNoNumber) {
  for (const char* text : {"", "64x", "64.5", "1e2", " 64", "+64", "0x40", "--epochs"})
    EXPECT_EQ(refusal("dim", text), std::string("--dim: ") + text + " is not an integer");
  for (const char* text : {"", "nan", "inf", "-inf", "1e999", "0,5", "0.5x"})
    EXPECT_NE(refusal("learning-rate", text), "") << text;
}

TEST_F(ConfigFlags, RefuseWhatIsOutOfRange) {
  EXPECT_EQ(refusal("epochs", "-1"), "--epochs: -1 is out of range; expected 0 to 1000000 epochs");
  EXPECT_EQ(refusal("dim", "99999999999999999999"),
            "--dim: 99999999999999999999 is out of range; expected 1 to 2048 columns");
}

TEST_F(ConfigFlags, NameTheNearestChoice) {
  EXPECT_EQ(refusal("schedule", "liner"),
            "--schedule: \"liner\" is not a valid value; expected linear, cosine or constant; did you mean linear?");
}

TEST_F(ConfigFlags, NameTheNearestOption) {
  EXPECT_EQ(refusal("dims", "64"), "--dims: no such option; did you mean model.dim?");
  EXPECT_EQ(refusal("zzz", "64"), "--zzz: no such option; `graphscale options` lists them all");
}

TEST_F(ConfigFlags, MayNotBeGivenTwiceUnderAnyName) {
  const std::string sentence = sentence_of([] {
    read_config("", {{"dim", "64", "--dim"}, {"model.dim", "64", "--set model.dim"}});
  });

  EXPECT_EQ(sentence, "--set model.dim: model.dim was set by --dim before; set it once");
}

TEST_F(ConfigFlags, MustBeADeviceWhereADeviceIsNamed) {
  EXPECT_EQ(read("device", "cuda:3").run.device, "cuda:3");
  for (const char* text : {"gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1234", ""})
    EXPECT_NE(refusal("device", text), "") << text;
}

TEST(Config, RefusesContradictions) {
  Config rates, device;
  rates.training.learning_rate = 0.01, rates.training.final_learning_rate = 0.02;
  device.training.deterministic = true, device.run.device = "cuda:0";

  EXPECT_NE(sentence_of([&] { check_config(rates); }).find("training.final_learning_rate"), std::string::npos);
  EXPECT_NE(sentence_of([&] { check_config(device); }).find("training.deterministic"), std::string::npos);

  rates.training.schedule = "constant", device.run.device = "auto";
  EXPECT_NO_THROW(check_config(rates));
  EXPECT_NO_THROW(check_config(device));
}

TEST(Config, RefusesWhatADeterministicRunCannotHave) {
  const auto refused = [](auto&& change) {
    Config config;
    config.training.deterministic = true;
    change(config);
    return sentence_of([&] { check_config(config); });
  };

  EXPECT_NE(refused([](Config& c) { c.sampler.negatives_from = "local"; }).find("negatives_from local"),
            std::string::npos);
  EXPECT_NE(refused([](Config& c) { c.store.replicated_rows = 5; }).find("store.replicated_rows"), std::string::npos);
  EXPECT_NE(refused([](Config& c) { c.exchange.compression = "topk"; }).find("compression topk"), std::string::npos);
  EXPECT_EQ(refused([](Config& c) { c.exchange.compression = "int8"; }), "");
}

TEST(Config, RefusesWhatAllreduceCannotHave) {
  const auto refused = [](auto&& change) {
    Config config;
    config.exchange.method = "allreduce";
    change(config);
    return sentence_of([&] { check_config(config); });
  };

  EXPECT_NE(refused([](Config& c) { c.ranks.compute = "0"; }).find("ranks.compute"), std::string::npos);
  EXPECT_NE(refused([](Config& c) { c.exchange.compression = "int8"; }).find("exchange.compression"),
            std::string::npos);
  EXPECT_NE(refused([](Config& c) { c.store.replicated_rows = 5; }).find("store.replicated_rows"), std::string::npos);
  EXPECT_NE(refused([](Config& c) { c.store.placement = "partition"; }).find("store.placement"), std::string::npos);
  EXPECT_EQ(refused([](Config&) {}), "");
}

TEST(Config, ReadsBooleansInEverySpellingAndNothingElse) {
  for (const char* yes : {"true", "True", "TRUE", "yes", "YES", "1", "on", "On"})
    EXPECT_TRUE(parse_bool(yes, "x")) << yes;
  for (const char* no : {"false", "FALSE", "no", "No", "0", "off", "OFF"}) EXPECT_FALSE(parse_bool(no, "x")) << no;
  for (const char* neither : {"", "2", "y", "t", "truee", " true", "00", "enable"})
    EXPECT_NE(sentence_of([&] { parse_bool(neither, "x"); }), "") << neither;
}

TEST(Config, HasAUniqueShortNameForEveryOption) {
  std::set<std::string> flags;
  for (const OptionText& option : option_texts()) EXPECT_TRUE(flags.insert(option.flag).second) << option.flag;
}

TEST(Config, HasDefaultsWithinTheirRanges) {
  Config config;
  each_option(config, [](const char* name, const auto& value, const Option& option) {
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>)
      if (option.min < option.max) {
        EXPECT_GE(double(value), option.min) << name;
        EXPECT_LE(double(value), option.max) << name;
      }
  });
  EXPECT_NO_THROW(check_config(config));
}

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("dim", ""), 3);
  EXPECT_EQ(edit_distance("", "dim"), 3);
  EXPECT_EQ(edit_distance("dims", "dim"), 1);
  EXPECT_EQ(edit_distance("dmi", "dim"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(NearestName, IsEmptyWhereNoneIsNear) {
  EXPECT_EQ(nearest_name("trian", {"train", "query"}), "train");
  EXPECT_EQ(nearest_name("serve", {"train", "query"}), "");
}

TEST(IdleOptions, AreThoseThatTheKindDoesNotReadAndThatWereChanged) {
  Config config = default_config("line");
  EXPECT_TRUE(idle_options(config).empty());
  config.sampler.p = 2, config.model.order = "first", config.training.epochs = 7;

  ASSERT_EQ(idle_options(config).size(), 1u);
  EXPECT_EQ(idle_options(config)[0], "sampler.p 2 has no effect: model.kind line does not read it (read by: node2vec)");
  config.model.kind = "node2vec";
  EXPECT_EQ(idle_options(config).size(), 1u) << "model.order";
  EXPECT_TRUE(idle_options(default_config("rotate")).empty());
}

TEST(Options, AreListedForPeople) {
  const std::string text = options_text();
  EXPECT_NE(text.find("default 5 (transe, rotate 1; distmult, complex 256)"), std::string::npos);

  EXPECT_NE(text.find("sampler.walk_length (--walk-length), integer, 2 to 1024 nodes, default 40\n"
                      "    nodes in one walk, its start among them\n"),
            std::string::npos);
  EXPECT_NE(text.find("training.schedule (--schedule), string, linear, cosine or constant, default linear"),
            std::string::npos);
}

TEST(Options, AreListedAsJson) {
  const auto list = nlohmann::json::parse(options_json());

  ASSERT_EQ(list.size(), option_texts().size());
  for (const auto& option : list) {
    if (option["name"] != "training.optimizer") continue;
    EXPECT_EQ(option["default"], "sgd");
    EXPECT_EQ(option["defaults"]["rotate"], "adagrad");
    EXPECT_FALSE(option["defaults"].contains("node2vec"));
  }
  EXPECT_EQ(list[1]["name"], "model.dim");
  EXPECT_EQ(list[1]["flag"], "--dim");
  EXPECT_EQ(list[1]["type"], "integer");
  EXPECT_EQ(list[1]["default"], 128);
  EXPECT_EQ(list[1]["max"], 2048);
  EXPECT_EQ(list[1]["unit"], "columns");
}

TEST(Options, HaveASchemaThatClosesEverySection) {
  const auto schema = nlohmann::json::parse(options_json_schema());

  EXPECT_EQ(schema["additionalProperties"], false);
  const auto& training = schema["properties"]["training"];
  EXPECT_EQ(training["additionalProperties"], false);
  EXPECT_EQ(training["properties"]["seed"]["maximum"], std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(training["properties"]["schedule"]["enum"], nlohmann::json({"linear", "cosine", "constant"}));
  EXPECT_EQ(training["properties"]["epochs"]["type"], "integer");
}

}  // namespace
}  // namespace gs
