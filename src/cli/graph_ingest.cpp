#include <iostream>
#include <map>

#include "graphscale/config.hpp"
#include "graphscale/graph.hpp"

#include "src/cli/commands.hpp"

namespace gs::cli {
namespace {

const std::map<std::string, Duplicates> kDuplicates = {
    {"sum", Duplicates::sum}, {"max", Duplicates::max}, {"first", Duplicates::first}, {"keep", Duplicates::keep}};
const std::map<std::string, Delimiter> kDelimiters = {
    {"tab", Delimiter::tab}, {"comma", Delimiter::comma}, {"blank", Delimiter::blank}};
const std::map<std::string, Header> kHeaders = {{"auto", Header::detect}, {"yes", Header::yes}, {"no", Header::no}};

struct IngestCommand {
  std::vector<std::string> files;
  std::string store, undirected, header = "auto", self_loops = "keep", bad_weights = "refuse", duplicates, delimiter;
  bool directed = false;
  IngestOptions options;

  void resolve(const CLI::App& app, const Common& common) {
    if (directed) options.directed = true;
    if (app.count("--undirected") > 0) {
      const bool wanted = parse_bool(undirected, "--undirected");
      if (directed && wanted) throw Error(Fault::usage, "--directed and --undirected contradict each other");
      options.directed = !wanted;
    }
    options.header = kHeaders.at(header);
    if (!duplicates.empty()) options.duplicates = kDuplicates.at(duplicates);
    if (!delimiter.empty()) options.delimiter = kDelimiters.at(delimiter);
    options.keep_self_loops = self_loops == "keep";
    options.drop_bad_weights = bad_weights == "drop";
    options.threads = common.thread_count();
  }

  std::string source() const {
    std::string text = "graph ingest";
    for (const std::string& file : files) text += " " + file;
    return text;
  }
};

void print_counts(const IngestCounts& counts, const BuiltGraph& graph, const IngestCommand& command) {
  const auto print = [](const char* what, Offset count) { std::cout << what << ": " << with_commas(count) << "\n"; };
  const auto print_some = [&](const char* what, Offset count) {
    if (count > 0) print(what, count);
  };
  const bool keeps_duplicates = command.options.duplicates == Duplicates::keep, triples = command.options.triples;
  print("lines read", counts.lines);
  print("lines skipped (blank, comment)", counts.skipped_lines);
  print_some("lines skipped as headers", counts.header_lines);
  print_some("lines dropped for their weight", counts.dropped_weights);
  print(triples ? "triples read" : "edges read", counts.edges);
  print(triples            ? "duplicate triples, merged"
        : keeps_duplicates ? "duplicate edges, kept"
                           : "duplicate edges, merged",
        counts.duplicate_edges);
  print(command.options.keep_self_loops ? "self-loops, kept" : "self-loops, dropped", counts.self_loops);
  print_some("nodes that no edge names", counts.listed_only_nodes);
  print("nodes", graph.csr().num_nodes());
  print_some("relations", graph.num_relations());
  print(triples          ? "triples"
        : graph.directed ? "arcs (directed)"
                         : "arcs (undirected: two an edge)",
        graph.csr().num_arcs());
}

void run(const IngestCommand& command) {
  const double start_s = now_s();
  // An unwritable place is said now, not after an hour of reading. A store that exists gets a new version.
  check_writable(fs::path(command.store));
  IngestCounts counts;
  const BuiltGraph graph = ingest({command.files.begin(), command.files.end()}, command.options, counts);
  const VersionInfo version = publish(command.store, graph, command.source(), command.options.threads);
  print_counts(counts, graph, command);
  std::cout << "store: " << command.store << " (version " << version.id << ")" << std::endl;
  log_info("ingest took " + human_seconds(now_s() - start_s));
}

}  // namespace

void add_graph_ingest(CLI::App& graph, Common& common) {
  CLI::App* app = graph.add_subcommand("ingest", "read edges into a graph store");
  const auto command = std::make_shared<IngestCommand>();
  IngestOptions& options = command->options;

  app->add_option("files", command->files,
                  "edge lists (SOURCE TARGET [WEIGHT]), MatrixMarket files or .npy pairs; gzip and zstd are unpacked")
      ->required();
  app->add_option("--out", command->store, "the store to make, or to add a version to")->required();
  app->add_flag("--directed", command->directed, "an edge is an arc from its source to its target");
  app->add_flag("--undirected", command->undirected,
                "an edge is two arcs, one in each direction (default; general matrices are directed); =no: --directed");
  app->add_flag("--weighted", options.weighted, "the third column is the edge's weight: a finite number >= 0");
  app->add_flag("--triples", options.triples,
                "lines are HEAD RELATION TAIL: a knowledge graph, directed, each triple once");
  app->add_option("--duplicates", command->duplicates,
                  "several edges between the same nodes become one, with the sum of the weights (unweighted: their "
                  "number), the largest or the first weight, or are kept side by side (default: sum where weighted)")
      ->check(CLI::IsMember(kDuplicates));
  app->add_option("--self-loops", command->self_loops, "edges from a node to itself: kept (one arc) or dropped")
      ->check(CLI::IsMember({"keep", "drop"}))
      ->capture_default_str();
  app->add_option("--delimiter", command->delimiter,
                  "what separates columns (default: a tab, else a comma, else blanks, as the first data line has it)")
      ->check(CLI::IsMember(kDelimiters));
  app->add_option("--header", command->header, "is the first data line of each file a header of columns?")
      ->check(CLI::IsMember(kHeaders))
      ->capture_default_str();
  app->add_option("--nodes", options.node_list, "file of names, one a line, that get rows though no edge names them");
  app->add_option("--bad-weights", command->bad_weights,
                  "lines with a negative, infinite, unreadable or no weight: refuse the file, or drop them, counted")
      ->check(CLI::IsMember({"refuse", "drop"}))
      ->capture_default_str();
  app->callback([app, command, &common] {
    command->resolve(*app, common);
    run(*command);
  });
}

}  // namespace gs::cli
