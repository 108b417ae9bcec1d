#include "src/cli/eval_rank.hpp"

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "graphscale/eval.hpp"

namespace gs::cli {
namespace {

struct Arguments {
  std::string run, names, metric = "dot", device = "auto", sample = "uniform", unseen = "leave-out";
  RankFiles files;
  RankOptions options;
  bool json = false;
};

using Json = nlohmann::ordered_json;

const std::map<std::string, Metric> kMetrics{{"cosine", Metric::cosine}, {"dot", Metric::dot}, {"l2", Metric::l2}};

void print_line(const std::string& name, const RankScores& scores) {
  std::printf("%-16s %12s  %8.4f %12.1f  %8.4f %8.4f %8.4f\n", name.c_str(), with_commas(scores.queries).c_str(),
              scores.mrr, scores.mean_rank, scores.hits_at_1, scores.hits_at_3, scores.hits_at_10);
}

void print_text(const RankingReport& report, const char* what) {
  std::cout << with_commas(report.triples) << ' ' << what << "s ranked among "
            << (report.negatives > 0 ? with_commas(report.negatives) + " sampled of " : std::string())
            << with_commas(report.entities) << " entities; " << with_commas(report.unseen_triples)
            << " with an unseen name " << (report.unseen_worst ? "rank last" : "left out") << "; "
            << with_commas(report.nan_answers) << " answers are NaN\n";
  std::printf("%-16s %12s  %8s %12s  %8s %8s %8s\n", "", "queries", "MRR", "mean rank", "Hits@1", "Hits@3", "Hits@10");
  print_line("filtered", report.filtered.both);
  print_line("  head", report.filtered.head), print_line("  tail", report.filtered.tail);
  print_line("raw", report.raw.both);
  print_line("  head", report.raw.head), print_line("  tail", report.raw.tail);
  if (report.relations.empty()) return;
  std::printf("filtered, by relation\n");
  for (const auto& [relation, scores] : report.relations) print_line("  " + relation, scores);
}

Json json_of(const RankScores& scores) {
  Json json{{"queries", scores.queries}};
  for (const auto& [name, mean] : kRankMeans) json[name] = scores.*mean;
  return json;
}

Json json_of(const SideScores& scores) {
  Json json = json_of(scores.both);
  json["head"] = json_of(scores.head), json["tail"] = json_of(scores.tail);
  return json;
}

void print_json(const RankingReport& report, const Arguments& arguments, const char* what) {
  Json answer{{cat(what, "s"), report.triples}, {"entities", report.entities}};
  if (report.negatives > 0) {
    answer["negatives"] = report.negatives;
    answer["sample"] = arguments.sample, answer["seed"] = arguments.options.seed;
  }
  answer["unseen"] = arguments.unseen;
  answer[cat("unseen_", what, "s")] = report.unseen_triples;
  answer[cat("unseen_entity_", what, "s")] = report.unseen_entity_triples;
  answer["unseen_relation_triples"] = report.unseen_relation_triples;
  answer["nan_answers"] = report.nan_answers, answer["nan_scores"] = report.nan_scores;
  answer["filtered"] = json_of(report.filtered), answer["raw"] = json_of(report.raw);
  if (arguments.files.by_relation) {
    answer["relations"] = Json::array();
    for (const auto& [relation, scores] : report.relations) {
      Json line{{"relation", relation}};
      line.update(json_of(scores));
      answer["relations"].push_back(std::move(line));
    }
  }
  std::cout << answer.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

/// Options of one kind of run that were given to the other.
void refuse(const CLI::App& command, std::initializer_list<const char*> options, const char* reason) {
  for (const char* option : options)
    if (command.count(option) > 0) throw Error(Fault::usage, cat(option, ": ", reason));
}

void run(Arguments& arguments, const CLI::App& command, int threads) {
  arguments.files.unseen_worst = arguments.unseen == "worst";
  arguments.files.by_degree = arguments.sample == "degree";
  if (arguments.options.negatives == 0)
    refuse(command, {"--sample", "--seed"}, "nothing is sampled without --negatives");
  const bool are_triples = TripleRun::is_at(arguments.run);
  if (are_triples)
    refuse(command, {"--metric", "--directed", "--row-names"},
           "the run is a knowledge graph's, which has a score of its own");
  else
    refuse(command, {"--by-relation"}, "the run is not a knowledge graph's");

  const Device device = choose_device(arguments.device);
  MemoryLedger ledger(device);
  const Exec exec{device, threads, nullptr, &ledger};
  const RankingReport report = are_triples
                                   ? eval_rank(TripleRun::open(arguments.run), arguments.files, arguments.options, exec)
                                   : eval_rank(Embeddings::open(arguments.run, arguments.names),
                                               kMetrics.at(arguments.metric), arguments.files, arguments.options, exec);
  const char* const what = are_triples ? "triple" : "pair";
  if (report.nan_scores > 0)
    log_warn(cat(with_commas(report.nan_scores), " scores are NaN, ", with_commas(report.nan_answers),
                 " of them answers': they rank last"));
  if (arguments.json)
    print_json(report, arguments, what);
  else
    print_text(report, what);
}

}  // namespace

void add_rank(CLI::App& eval, Common& common) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App& command = *eval.add_subcommand(
      "rank", "Ranking of a knowledge graph's triples or a graph's links: MRR, mean rank, Hits@1, 3, 10");
  command.add_option("RUN", arguments->run, "a run's folder; of links also its embeddings folder or an .npy file")
      ->required();
  command
      .add_option("--test", arguments->files.test, "lines `head relation tail`, or `node node`: each side is asked for")
      ->required()
      ->option_text("FILE");
  command.add_option("--known", arguments->files.known, "further true lines, as of train and valid: filtered out")
      ->option_text("FILE ...");
  command.add_option("--graph", arguments->files.graph, "a store whose triples or edges are true, too")
      ->option_text("STORE");
  command.add_option("--negatives", arguments->options.negatives, "rank among N sampled entities; default: among all")
      ->check(CLI::Range(Offset{1}, Offset{kMaxRows}))
      ->option_text("N");
  command
      .add_option("--sample", arguments->sample, "uniform | degree (by known lines, of --known and --graph) [uniform]")
      ->check(CLI::IsMember({"uniform", "degree"}))
      ->option_text("HOW");
  command.add_option("--seed", arguments->options.seed, "of the sample [1]")->option_text("N");
  command
      .add_option("--unseen", arguments->unseen,
                  "lines with an unknown name: leave-out | worst (rank last) [leave-out]")
      ->check(CLI::IsMember({"leave-out", "worst"}))
      ->option_text("HOW");
  command.add_flag("--by-relation", arguments->files.by_relation, "a line a relation, too");
  command.add_option("--metric", arguments->metric, "of links: dot | cosine | l2 (negative distance) [dot]")
      ->check(CLI::IsMember(&kMetrics))
      ->option_text("NAME");
  command.add_flag("--directed", arguments->files.directed,
                   "of links: a true line says nothing of its reverse; default: as the store, else undirected");
  command
      .add_option("--row-names", arguments->names,
                  "of links: names, one line a row; default: names.txt beside the array")
      ->option_text("FILE");
  command.add_option("--device", arguments->device, "auto | cpu | cuda | cuda:N [auto]")->option_text("NAME");
  command.add_flag("--json", arguments->json, "print one JSON object");
  command.callback([arguments, &command, &common] { run(*arguments, command, common.thread_count()); });
}

}  // namespace gs::cli
