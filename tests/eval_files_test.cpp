#include <cmath>

#include "graphscale/eval.hpp"

#include "tests/support/embeddings_folder.hpp"

namespace gs {
namespace {

class EvalFiles : public InFolder {
 protected:
  EvalFiles() { set_quiet(true); }
  ~EvalFiles() override { set_quiet(false); }

  /// Nodes a b c d e f: the first three near (1, 0), the others near (0, 1).
  Embeddings six() const {
    return make_embeddings(folder_,
                           {{"a", {5, 0}}, {"b", {6, 1}}, {"c", {7, 0}}, {"d", {0, 5}}, {"e", {1, 6}}, {"f", {0, 7}}});
  }
};

using ReadLabels = EvalFiles;

TEST_F(ReadLabels, TabsCommasAndBlanksSayTheSame) {
  const Embeddings embeddings = six();
  const fs::path tabs = make("tabs", "a\tx,y\nb\ty\nc\tx\n"), commas = make("commas", "a,x,y\nb,y\nc,x\n"),
                 quotes = make("quotes", "\"a\",\"x,y\"\n\"b\",\"y\"\n\"c\",\"x\"\n"),
                 blanks = make("blanks", "a x y\nb  y\nc x");

  for (const fs::path& path : {tabs, commas, quotes, blanks}) {
    const Labels labels = read_labels(path, embeddings.names());

    EXPECT_EQ(labels.rows, (std::vector<RowId>{0, 1, 2})) << path;
    EXPECT_EQ(labels.offsets, (std::vector<Offset>{0, 2, 3, 4})) << path;
    EXPECT_EQ(labels.classes, (std::vector<int>{0, 1, 1, 0})) << path;
    EXPECT_EQ(labels.class_names, (std::vector<std::string>{"x", "y"})) << path;
    EXPECT_TRUE(labels.multi_label()) << path;
  }
}

TEST_F(ReadLabels, FilesMadeOnWindowsNameTheSameNodesAndClasses) {
  const Labels labels = read_labels(make("win.tsv",
                                         "\xEF\xBB\xBF"
                                         "a\tx\r\nb\ty\r\n\r\nc\tx"),
                                    six().names());

  EXPECT_EQ(labels.rows, (std::vector<RowId>{0, 1, 2}));
  EXPECT_EQ(labels.class_names, (std::vector<std::string>{"x", "y"}));
}

TEST_F(ReadLabels, LinesOfOneNodeAddUpInAnyOrder) {
  const Labels labels = read_labels(make("labels", "b\tz\na\ty\nb\tx\nb\tz\n"), six().names());

  EXPECT_EQ(labels.rows, (std::vector<RowId>{0, 1}));
  EXPECT_EQ(labels.classes, (std::vector<int>{1, 0, 2}));
}

TEST_F(ReadLabels, UnknownNodesAreCountedAndLeftOutWithTheirClasses) {
  const Labels labels = read_labels(make("labels", "a\tx\nzeta\tw\nb\ty\neta\tx\nzeta\tv\n"), six().names());

  EXPECT_EQ(labels.unknown_nodes, 2);
  EXPECT_EQ(labels.count(), 2);
  EXPECT_EQ(labels.class_names, (std::vector<std::string>{"x", "y"}));
}

TEST_F(ReadLabels, NodesWithoutALabelAreNotLabelled) {
  const Labels labels = read_labels(make("labels", "a\tx\nb\nc\t\nd\ty\n"), six().names());

  EXPECT_EQ(labels.rows, (std::vector<RowId>{0, 3}));
}

TEST_F(ReadLabels, OneClassIsNothingToTellApart) {
  const fs::path path = make("labels", "a\tx\nb\tx\nzeta\ty\n");
  const Embeddings embeddings = six();

  const std::string sentence = sentence_of(Fault::input, [&] { read_labels(path, embeddings.names()); });

  EXPECT_SAYS(sentence, path.string() + ": 1 classes on 2 nodes");
}

TEST_F(ReadLabels, AnEmptyFileIsRefused) {
  const fs::path path = make("labels", "");
  const Embeddings embeddings = six();

  sentence_of(Fault::input, [&] { read_labels(path, embeddings.names()); });
}

class ReadSplit : public EvalFiles {
 protected:
  LabelSplit read(const std::string& text) const {
    const Embeddings embeddings = six();
    const Labels labels = read_labels(make("labels", "a\tx\nb\tx\nd\ty\ne\ty\n"), embeddings.names());
    return read_split(make("split", text), embeddings.names(), labels);
  }
};

TEST_F(ReadSplit, TrainAndTestArePositionsAmongTheLabelledAndValidIsNeither) {
  const LabelSplit split = read("e\ttest\na\ttrain\nd\ttrain\nb\tvalid\n");

  EXPECT_EQ(split.train, (std::vector<Offset>{0, 2}));
  EXPECT_EQ(split.test, (std::vector<Offset>{3}));
}

TEST_F(ReadSplit, UnknownAndUnlabelledNodesAreLeftOut) {
  const LabelSplit split = read("zeta\ttest\na\ttrain\nc\ttest\nd\ttest\n");

  EXPECT_EQ(split.train, (std::vector<Offset>{0}));
  EXPECT_EQ(split.test, (std::vector<Offset>{2}));
}

TEST_F(ReadSplit, AnotherPartANodeTwiceAndAnEmptyPartAreRefused) {
  EXPECT_SAYS(sentence_of(Fault::input, [&] { read("a\ttrain\nb\ttrian\n"); }), "split:2: ");
  EXPECT_SAYS(sentence_of(Fault::input, [&] { read("a\ttrain\nb\ttest\na\ttest\n"); }), "split:3: node \"a\"");
  EXPECT_SAYS(sentence_of(Fault::input, [&] { read("a\n"); }), "split:1: ");
  EXPECT_SAYS(sentence_of(Fault::input, [&] { read("a\ttrain\nb\tvalid\n"); }), "to test on");
}

using EvalClassify = EvalFiles;

TEST_F(EvalClassify, SaysWhatWasJudgedAndWhatWasLeftOut) {
  const Embeddings embeddings = six();
  const fs::path labels = make("labels", "a\tx\nb\tx\nd\ty\ne\ty\nzeta\tx\n");
  ClassifyOptions options;
  options.ratios = {0.5, 0.75};
  options.seeds = 3;

  const ClassifyReport report = eval_classify(embeddings, labels, options);

  EXPECT_EQ(report.labelled, 4);
  EXPECT_EQ(report.unknown_nodes, 1);
  EXPECT_EQ(report.unlabelled_rows, 2);
  EXPECT_EQ(report.classes, 2);
  EXPECT_FALSE(report.multi_label);
  ASSERT_EQ(report.scores.size(), 2u);
  EXPECT_EQ(report.scores[1].ratio, 0.75);
  EXPECT_EQ(report.scores[1].seeds, 3);
  EXPECT_EQ(report.scores[1].train_nodes, 3);
  EXPECT_EQ(report.scores[1].test_nodes, 1);
}

TEST_F(EvalClassify, MeanAndDeviationAreThoseOfTheSplits) {
  const Embeddings embeddings = six();
  const fs::path file = make("labels", "a\tx\nb\tx\nc\ty\nd\ty\ne\tx\nf\ty\n");
  const Labels labels = read_labels(file, embeddings.names());
  ClassifyOptions options;
  options.seeds = 8;
  double sum = 0, squares = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const double micro = classify(embeddings.rows(), labels, random_split(6, 0.5, seed), {}).micro_f1;
    sum += micro, squares += micro * micro;
  }

  const Statistic micro = eval_classify(embeddings, file, options).scores[0].micro_f1;

  EXPECT_NEAR(micro.mean, sum / 8, 1e-12);
  EXPECT_NEAR(micro.sd, std::sqrt(squares / 8 - sum / 8 * sum / 8), 1e-12);
  EXPECT_GT(micro.sd, 0);
}

TEST_F(EvalClassify, AFixedSplitIsJudgedOnItsTestNodes) {
  const Embeddings embeddings = six();
  const fs::path labels = make("labels", "a\tx\nb\tx\nc\ty\nd\ty\ne\ty\nf\tx\n");
  ClassifyOptions options;
  options.split_file = make("split", "a\ttrain\nd\ttrain\nb\ttest\nc\ttest\ne\ttest\nf\tvalid\n");

  const ClassifyReport report = eval_classify(embeddings, labels, options);

  ASSERT_EQ(report.scores.size(), 1u);
  EXPECT_EQ(report.scores[0].train_nodes, 2);
  EXPECT_EQ(report.scores[0].test_nodes, 3);
  EXPECT_NEAR(report.scores[0].accuracy.mean, 2.0 / 3, 1e-12);  // c lies among the x
  EXPECT_EQ(report.scores[0].accuracy.sd, 0);
}

TEST_F(EvalClassify, RatiosAndSeedsOutOfRangeAreUsageFaults) {
  const auto refuses = [](ClassifyOptions options) { sentence_of(Fault::usage, [&] { check_classify(options); }); };
  ClassifyOptions ratio_one, ratio_nan, no_ratio, no_seed;
  ratio_one.ratios = {0.5, 1.0};
  ratio_nan.ratios = {std::nan("")};
  no_ratio.ratios = {};
  no_seed.seeds = 0;

  for (const ClassifyOptions& options : {ratio_one, ratio_nan, no_ratio, no_seed}) refuses(options);
  check_classify({});
}

}  // namespace
}  // namespace gs
