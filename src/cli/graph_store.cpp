#include <algorithm>
#include <charconv>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>

#include "graphscale/graph.hpp"

#include "src/cli/commands.hpp"

namespace gs::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

// ------------------------------------------------------------------------------------------------------------ generate

struct GenerateCommand {
  GeneratorOptions options;
  std::string store, text;
};

/// An option that the chosen kind has no use for is a mistake, not a wish that may be ignored.
void check_options_of_kind(const CLI::App& app, const std::string& kind) {
  struct Use {
    const char* option;
    std::vector<std::string> kinds;
  };
  static const std::vector<Use> kUses{{"--edges", {"rmat", "er", "sbm"}},
                                      {"--seed", {"rmat", "er", "sbm"}},
                                      {"--a", {"rmat"}},
                                      {"--b", {"rmat"}},
                                      {"--c", {"rmat"}},
                                      {"--blocks", {"sbm"}},
                                      {"--inside-share", {"sbm"}}};
  for (const Use& use : kUses)
    if (app.count(use.option) > 0 && std::find(use.kinds.begin(), use.kinds.end(), kind) == use.kinds.end())
      throw Error(Fault::usage, cat(use.option, " does not apply to ", kind, "; leave it out"));
}

/// The generator's stream as `from TAB to` lines, in its order. Threads make pieces of text that one writes.
void write_edges_as_text(const GeneratorOptions& options, const fs::path& path) {
  constexpr Offset kPiece = 1 << 17;  // edges
  const Offset edges = generated_edges(options), wave = kPiece * 4 * options.threads;
  OutputFile out(path);
  Progress progress("generate", "edges", edges);
  for (Offset start = 0; start < edges; start += wave) {
    const Offset count = std::min(wave, edges - start);
    std::vector<std::string> pieces(std::size_t((count + kPiece - 1) / kPiece));
    parallel_for(options.threads, count, kPiece, [&](Offset first, Offset last, int) {
      for (; first < last; first += kPiece) {
        std::vector<RowId> from(std::size_t(std::min(kPiece, last - first))), to(from.size());
        generate_edges(options, start + first, from, to);
        std::string& text = pieces[std::size_t(first / kPiece)];
        char line[32];
        for (std::size_t i = 0; i < from.size(); ++i) {
          char* end = std::to_chars(line, line + 10, from[i]).ptr;
          *end++ = '\t';
          end = std::to_chars(end, end + 10, to[i]).ptr;
          *end++ = '\n';
          text.append(line, end);
        }
      }
    });
    for (const std::string& text : pieces) out.write(text);
    progress.advance(count);
  }
  out.commit();
  progress.finish();
}

void run_generate(const CLI::App& app, GenerateCommand& command, const Common& common) {
  GeneratorOptions& options = command.options;
  options.threads = common.thread_count();
  check_options_of_kind(app, options.kind);
  check_generator(options);
  if (command.store.empty() == command.text.empty())
    throw Error(Fault::usage, "graph generate: give either --out STORE or --text FILE");
  const std::string& place = command.store.empty() ? command.text : command.store;
  check_writable(place);
  if (!command.text.empty()) return write_edges_as_text(options, command.text);

  const std::string source = cat("graph generate ", options.kind, " --nodes ", options.nodes, " --edges ",
                                 generated_edges(options), " --seed ", options.seed);
  const VersionInfo info = publish(command.store, generate(options), source, options.threads);
  std::cout << "nodes: " << with_commas(info.num_nodes) << "\narcs: " << with_commas(info.num_arcs)
            << "\nstore: " << command.store << " (version " << info.id << ")\n";
}

void add_generate(CLI::App& graph, Common& common) {
  CLI::App* app = graph.add_subcommand("generate", "make a synthetic graph: rmat, er, sbm, ring or star");
  const auto command = std::make_shared<GenerateCommand>();
  GeneratorOptions& options = command->options;
  app->add_option("kind", options.kind,
                  "rmat: recursive quadrants, hubs; er: uniform pairs; sbm: equal blocks; ring; star")
      ->required();
  app->add_option("--nodes", options.nodes, "nodes, named 0 to N - 1")->required();
  app->add_option("--edges", options.edges, "edges drawn, before equal ones are merged (rmat, er, sbm)")
      ->capture_default_str();
  app->add_option("--seed", options.seed, "decides the edges")->check(whole_number)->capture_default_str();
  app->add_option("--out", command->store, "the store to make, or to add a version to");
  app->add_option("--text", command->text, "write the edges to this file instead, one `FROM TAB TO` a line");
  app->add_option("--a", options.a, "rmat: share of the quadrant of low rows and columns")->capture_default_str();
  app->add_option("--b", options.b, "rmat: share of low rows, high columns")->capture_default_str();
  app->add_option("--c", options.c, "rmat: share of high rows, low columns")->capture_default_str();
  app->add_option("--blocks", options.blocks, "sbm: number of blocks")->capture_default_str();
  app->add_option("--inside-share", options.inside_share, "sbm: share of edges inside a block")->capture_default_str();
  app->callback([app, command, &common] { run_generate(*app, *command, common); });
}

// ------------------------------------------------------------------------------------------ info, versions, rollback

void print_json(const VersionInfo& info, const std::string& store) {
  Json json{{"store", store},
            {"version", info.id},
            {"current", info.current},
            {"created", info.created},
            {"parent", info.parent.empty() ? Json() : Json(info.parent)},
            {"source", info.source},
            {"content_hash", info.content_hash},
            {"directed", info.directed},
            {"weighted", info.weighted},
            {"num_nodes", info.num_nodes},
            {"num_edges", info.num_arcs},
            {"num_relations", info.num_relations}};
  each_statistic(info.statistics, [&](const char* name, const auto& value) { json[name] = value; });
  std::cout << dumped(json);
}

/// "46, the most frequent: affects (803), result_of (455) ...", which are the first ones.
std::string relations_line(const Graph& graph) {
  constexpr Offset kShown = 5;
  const Csr csr = graph.csr();
  std::vector<Offset> triples(std::size_t(std::min(csr.num_relations, kShown)), 0);
  for (const RowId relation : csr.relations)
    if (relation < triples.size()) ++triples[relation];
  std::string line = with_commas(csr.num_relations) + ", the most frequent:";
  for (std::size_t i = 0; i < triples.size(); ++i)
    line += cat(i ? ", " : " ", graph.relation_names().name(Offset(i)), " (", with_commas(triples[i]), ")");
  return line;
}

void print_text(const Graph& graph, const std::string& store) {
  const VersionInfo& info = graph.info();
  const auto line = [](const char* what, const auto&... parts) {
    std::cout << std::left << std::setw(20) << what << cat(parts...) << "\n";
  };
  const GraphStatistics& s = info.statistics;
  line("store", store, ", version ", info.id, info.current ? " (current)" : "");
  line("made", info.created, " by ", info.source, info.parent.empty() ? "" : ", after " + info.parent);
  line("content", info.content_hash);
  line("nodes", with_commas(info.num_nodes));
  line("arcs", with_commas(info.num_arcs),
       info.num_relations > 0 ? " (triples)"
       : info.directed        ? " (directed)"
                              : " (undirected: two an edge, one a self-loop)",
       info.weighted ? ", weighted" : "");
  if (info.num_relations > 0) line("relations", relations_line(graph));
  line("degree", "mean ", s.mean_degree, ", median ", s.degree_p50, ", p90 ", s.degree_p90, ", p99 ", s.degree_p99,
       ", max ", s.degree_max);
  line("components", with_commas(s.components), ", the largest of ", with_commas(s.largest_component), " nodes");
  line("isolated nodes", with_commas(s.isolated));
  line("sinks", with_commas(s.sinks), " (no walk leaves them)");
  line("self-loops", with_commas(s.self_loops));
}

struct StoreCommand {
  std::string store, version;
  bool json = false;
};

void add_info(CLI::App& graph) {
  CLI::App* app = graph.add_subcommand("info", "check a store's arrays and describe the graph");
  const auto command = std::make_shared<StoreCommand>();
  app->add_option("store", command->store, "the graph store")->required();
  app->add_option("--version", command->version, "the version to describe (default: the current one)");
  app->add_flag("--json", command->json, "one JSON object; num_edges counts arcs as stored");
  app->callback([command] {
    const Graph graph = Graph::open(command->store, command->version);
    command->json ? print_json(graph.info(), command->store) : print_text(graph, command->store);
  });
}

void add_versions(CLI::App& graph) {
  CLI::App* app = graph.add_subcommand("versions", "list a store's versions, the current one with a star");
  const auto command = std::make_shared<StoreCommand>();
  app->add_option("store", command->store, "the graph store")->required();
  app->callback([command] {
    for (const VersionInfo& info : versions(command->store)) {
      std::cout << (info.current ? "* " : "  ") << info.id << "  ";
      if (!info.damage.empty())
        std::cout << "damaged: " << info.damage << "\n";
      else
        std::cout << info.created << "  " << with_commas(info.num_nodes) << " nodes  " << with_commas(info.num_arcs)
                  << " arcs  " << info.content_hash.substr(0, 8) << "  " << info.source << "\n";
    }
  });
}

void add_rollback(CLI::App& graph) {
  CLI::App* app = graph.add_subcommand("rollback", "make an older (or any other) version the current one");
  const auto command = std::make_shared<StoreCommand>();
  app->add_option("store", command->store, "the graph store")->required();
  app->add_option("version", command->version, "the version (default: the one that the current one was made after)");
  app->callback([command] {
    const VersionInfo info = rollback(command->store, command->version);
    std::cout << command->store << ": the current version is " << info.id << "\n";
  });
}

// --------------------------------------------------------------------------------------------------------------- split

struct SplitCommand {
  std::string store, version, folder;
  double test_share = 0.1;
  bool cover = false;
  std::uint64_t seed = 1;
};

/// One `A TAB B` a line. Throws output for a name that a reader of such lines could not take back.
void write_pairs(const fs::path& path, const std::vector<NamePair>& pairs) {
  OutputFile out(path);
  for (const auto& [from, to] : pairs) {
    const std::size_t first = from.find_first_not_of(" ");
    const bool comment = first != std::string::npos && (from[first] == '#' || from[first] == '%');
    for (const std::string& name : {from, to})
      if (name.empty() || name.find_first_of("\t\r\n") != std::string::npos || (comment && name == from))
        throw Error(Fault::output,
                    cat(path.filename().string(), ": the name '", name, "' cannot be written in a line of ",
                        "tab-separated names (it is empty, holds a tab, or begins like a comment)"));
    out.write(cat(from, "\t", to, "\n"));
  }
  out.commit();
}

void run_split(const SplitCommand& command, int threads) {
  OutputFolder folder(command.folder);
  const Graph graph = Graph::open(command.store, command.version);
  const EdgeSplit split = split_edges(graph, command.test_share, command.cover, command.seed, threads);

  const std::string made_from = cat(command.store, " ", graph.info().id);
  const VersionInfo train = publish(folder.path() / "train", split.train, "graph split of " + made_from, threads);
  write_pairs(folder.path() / "positive.tsv", split.positives);
  write_pairs(folder.path() / "negative.tsv", split.negatives);
  write_text(folder.path() / "split.json", dumped({{"store", command.store},
                                                   {"version", graph.info().id},
                                                   {"content_hash", graph.info().content_hash},
                                                   {"test_share", command.test_share},
                                                   {"keep_covered", command.cover},
                                                   {"seed", command.seed},
                                                   {"train_nodes", train.num_nodes},
                                                   {"train_arcs", train.num_arcs},
                                                   {"positives", split.positives.size()},
                                                   {"negatives", split.negatives.size()}}));
  folder.commit();
  std::cout << "train: " << with_commas(train.num_nodes) << " nodes, " << with_commas(train.num_arcs) << " arcs\n"
            << "held-out edges: " << with_commas(Offset(split.positives.size()))
            << "\nnon-edges: " << with_commas(Offset(split.negatives.size())) << "\nfolder: " << command.folder << "\n";
}

void add_split(CLI::App& graph, Common& common) {
  CLI::App* app = graph.add_subcommand("split", "hold out edges for `eval link`: a train store, positives, negatives");
  const auto command = std::make_shared<SplitCommand>();
  app->add_option("store", command->store, "the graph store")->required();
  app->add_option("--out", command->folder, "folder to make: train (a store), positive.tsv, negative.tsv, split.json")
      ->required();
  app->add_option("--version", command->version, "the version to split (default: the current one)");
  app->add_option("--test-share", command->test_share, "share of the edges to hold out, in (0, 1)")
      ->capture_default_str();
  app->add_flag("--keep-covered", command->cover, "hold out no node's last edge");
  app->add_option("--seed", command->seed, "decides which edges and non-edges")
      ->check(whole_number)
      ->capture_default_str();
  app->callback([command, &common] { run_split(*command, common.thread_count()); });
}

}  // namespace

void add_graph_store(CLI::App& graph, Common& common) {
  add_generate(graph, common);
  add_info(graph);
  add_versions(graph);
  add_rollback(graph);
  add_split(graph, common);
}

}  // namespace gs::cli
