#include "graphscale/eval.hpp"

#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "src/cli/eval_rank.hpp"

namespace gs::cli {
namespace {

struct ClassifyArguments {
  std::string run, names, labels;
  ClassifyOptions options;
  bool json = false;
};

struct LinkArguments {
  std::string run, names, positives, negatives, metric = "dot";
  bool json = false;
};

const std::map<std::string, Metric> kMetrics{{"cosine", Metric::cosine}, {"dot", Metric::dot}, {"l2", Metric::l2}};

/// null where there is no such number
nlohmann::ordered_json json_of(double value) {
  return std::isnan(value) ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
}

void print_json(const ClassifyReport& report) {
  nlohmann::ordered_json scores = nlohmann::ordered_json::array();
  for (const ClassifyScore& score : report.scores)
    scores.push_back({{"ratio", score.ratio},
                      {"seeds", score.seeds},
                      {"train_nodes", score.train_nodes},
                      {"test_nodes", score.test_nodes},
                      {"micro_f1", score.micro_f1.mean},
                      {"micro_f1_sd", score.micro_f1.sd},
                      {"macro_f1", score.macro_f1.mean},
                      {"macro_f1_sd", score.macro_f1.sd},
                      {"accuracy", json_of(score.accuracy.mean)},
                      {"accuracy_sd", json_of(score.accuracy.sd)}});
  const nlohmann::ordered_json answer{
      {"labelled_nodes", report.labelled},         {"unknown_nodes", report.unknown_nodes},
      {"unlabelled_rows", report.unlabelled_rows}, {"classes", report.classes},
      {"multi_label", report.multi_label},         {"scores", std::move(scores)}};
  std::cout << answer.dump(2) << '\n';
}

void print_text(const ClassifyReport& report) {
  std::cout << with_commas(report.labelled) << " labelled nodes, " << report.classes << " classes, "
            << (report.multi_label ? "one or more" : "one") << " a node; " << with_commas(report.unknown_nodes)
            << " names in the label file without a row, " << with_commas(report.unlabelled_rows)
            << " rows without a label\n";
  const bool with_accuracy = !report.multi_label;
  std::printf("%7s %6s %10s %10s  %-15s  %s\n", "ratio", "seeds", "train", "test", "micro-F1 (sd)",
              with_accuracy ? "macro-F1 (sd)    accuracy (sd)" : "macro-F1 (sd)");
  for (const ClassifyScore& score : report.scores) {
    std::printf("%7.3f %6d %10s %10s  %.4f (%.4f)  %.4f (%.4f)", score.ratio, score.seeds,
                with_commas(score.train_nodes).c_str(), with_commas(score.test_nodes).c_str(), score.micro_f1.mean,
                score.micro_f1.sd, score.macro_f1.mean, score.macro_f1.sd);
    if (with_accuracy) std::printf("  %.4f (%.4f)", score.accuracy.mean, score.accuracy.sd);
    std::printf("\n");
  }
}

void run(const ClassifyArguments& arguments) {
  check_classify(arguments.options);
  const Embeddings embeddings = Embeddings::open(arguments.run, arguments.names);
  const ClassifyReport report = eval_classify(embeddings, arguments.labels, arguments.options);
  if (arguments.json)
    print_json(report);
  else
    print_text(report);
}

void run(const LinkArguments& arguments) {
  const Embeddings embeddings = Embeddings::open(arguments.run, arguments.names);
  const LinkReport report =
      eval_link(embeddings, arguments.positives, arguments.negatives, kMetrics.at(arguments.metric));
  if (arguments.json) {
    const nlohmann::ordered_json answer{{"metric", arguments.metric},
                                        {"positives", report.positives},
                                        {"negatives", report.negatives},
                                        {"unknown_pairs", report.unknown_pairs},
                                        {"auc", report.auc},
                                        {"average_precision", report.average_precision}};
    std::cout << answer.dump(2) << '\n';
    return;
  }
  std::printf(
      "%s: AUC %.4f, average precision %.4f; %s positives, %s negatives, %s pairs with an unknown name left out\n",
      arguments.metric.c_str(), report.auc, report.average_precision, with_commas(report.positives).c_str(),
      with_commas(report.negatives).c_str(), with_commas(report.unknown_pairs).c_str());
}

/// The options that both commands have.
template <class Arguments>
void add_shared(CLI::App& command, Arguments& arguments) {
  command.add_option("RUN", arguments.run, "a run's folder, its embeddings folder, or an .npy file")->required();
  command.add_flag("--json", arguments.json, "print one JSON object");
  command.add_option("--row-names", arguments.names, "names, one line a row; default: names.txt beside the array")
      ->option_text("FILE");
}

void add_classify(CLI::App& eval, Common& common) {
  const auto arguments = std::make_shared<ClassifyArguments>();
  CLI::App& command = *eval.add_subcommand("classify", "Node classification: micro and macro-F1, accuracy");
  add_shared(command, *arguments);
  command.add_option("--labels", arguments->labels, "lines of a node and its labels: node label[,label...]")
      ->required()
      ->option_text("FILE");
  CLI::Option* ratios =
      command.add_option("--ratios", arguments->options.ratios, "shares of the labelled nodes to train on [0.5]")
          ->delimiter(',')
          ->option_text("R,R,...");
  CLI::Option* seeds = command.add_option("--seeds", arguments->options.seeds, "random splits a ratio [5]")
                           ->check(CLI::Range(1, 1000000))
                           ->option_text("N");
  command.add_option("--split", arguments->options.split_file, "lines `node train|valid|test`: this one split instead")
      ->excludes(ratios, seeds)
      ->option_text("FILE");
  command.add_flag("--normalize", arguments->options.classifier.normalize, "scale every vector to length 1 first");
  command.callback([arguments, &common] {
    arguments->options.classifier.threads = common.thread_count();
    run(*arguments);
  });
}

void add_link(CLI::App& eval) {
  const auto arguments = std::make_shared<LinkArguments>();
  CLI::App& command = *eval.add_subcommand("link", "Link prediction: AUC and average precision of scored pairs");
  add_shared(command, *arguments);
  command.add_option("--positive", arguments->positives, "held-out edges, lines `node node`")
      ->required()
      ->option_text("FILE");
  command.add_option("--negative", arguments->negatives, "pairs that are no edges, lines `node node`")
      ->required()
      ->option_text("FILE");
  command.add_option("--metric", arguments->metric, "dot | cosine | l2 (negative distance) [dot]")
      ->check(CLI::IsMember(&kMetrics))
      ->option_text("NAME");
  command.callback([arguments] { run(*arguments); });
}

}  // namespace

void add_eval(CLI::App& app, Common& common) {
  CLI::App& eval = *app.add_subcommand("eval", "Judge embeddings");
  add_classify(eval, common);
  add_link(eval);
  add_rank(eval, common);
}

}  // namespace gs::cli
