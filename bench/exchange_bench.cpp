// What exchange costs: bytes and seconds of a step by rows, without deduplication and by all-reduce; how often the
// hottest rows are read; how a step's stages change with the number of ranks. One JSON line a case, a table to stderr.
//
//   exchange_bench wire  STORE...   [--ranks 4] [--steps 10] [--positions 65536]
//   exchange_bench hits  STORE...   [--steps 10] [--positions 65536] [--rmat-nodes 100000]
//   exchange_bench steps STORE      [--ranks 1,2,4,8] [--positions 65536] [--walks-per-node 4] [--rounds 3]
//
// Batches: walks as configured, or edges as LINE draws them (walks of two nodes, window 1, five negatives an edge). A
// step of either has about --positions nodes in its walks, all ranks' together. Started by mpirun or as torchrun
// starts, `wire` and `steps` run on those ranks.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "graphscale/train.hpp"

#include "bench/support/exchange_alone.hpp"
#include "bench/support/measure.hpp"
#include "bench/support/row_reads.hpp"

namespace {

using namespace gs;
using bench::Exchanger;
using bench::Reads;
using bench::Replay;
using Json = nlohmann::ordered_json;

struct Options {
  std::string axis;
  std::vector<std::string> stores;
  std::vector<int> ranks = {1, 2, 4, 8};
  int steps = 10, walks_per_node = 4, rounds = 3;
  Offset positions = 1 << 16, rmat_nodes = 100'000;
  std::string config_file;
  std::vector<std::string> settings;
  Config config;
};

Options read_options(int argc, char** argv) {
  Options options;
  CLI::App app("Bytes and seconds of exchanged training");
  app.require_subcommand(1);
  app.fallthrough();
  for (const auto& [name, help] : {std::pair("wire", "bytes and seconds of communication a step"),
                                   {"hits", "share of reads that hot rows take"},
                                   {"steps", "seconds of a step by stage and number of ranks"}}) {
    CLI::App* axis = app.add_subcommand(name, help);
    axis->add_option("stores", options.stores, "graph stores");
    axis->callback([&options, name = name] { options.axis = name; });
  }
  const auto* ranks = app.add_option("--ranks", options.ranks, "numbers of ranks [wire: 4]")->delimiter(',');
  app.add_option("--steps", options.steps, "measured steps of wire and hits")->check(CLI::PositiveNumber);
  app.add_option("--positions", options.positions, "nodes in the walks of a step")->check(CLI::PositiveNumber);
  app.add_option("--walks-per-node", options.walks_per_node, "walks that `steps` trains")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds, "times that `steps` trains each case")->check(CLI::PositiveNumber);
  app.add_option("--rmat-nodes", options.rmat_nodes, "of the R-MAT graph of hits, 16 edges a node; 0: none");
  app.add_option("--config", options.config_file, "configuration file");
  app.add_option("--set", options.settings, "any option, as in model.dim=64");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  if (ranks->count() == 0 && options.axis == "wire") options.ranks = {4};
  std::vector<Setting> settings;
  for (const std::string& text : options.settings) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) throw Error(Fault::usage, cat("--set ", text, ": not NAME=VALUE"));
    settings.push_back({text.substr(0, equals), text.substr(equals + 1), cat("--set ", text)});
  }
  options.config = read_config(options.config_file, settings);
  return options;
}

struct Batches {
  const char* name;
  Config config;
};

/// The configured walks, and LINE-like edges (Tang et al., 2015); a step of as many positions.
std::vector<Batches> batches_of(const Options& options) {
  std::vector<Batches> all = {{"walks", options.config}, {"edges", options.config}};
  SamplerConfig& sampler = all[1].config.sampler;
  sampler.walk_length = 2, sampler.shared_negatives = 5;
  all[1].config.model.window = 1, all[1].config.model.shrink_window = false, all[1].config.model.negatives = 5;
  for (Batches& batches : all)
    batches.config.training.step_walks =
        int(std::max<Offset>(1, options.positions / batches.config.sampler.walk_length));
  return all;
}

/// The ranks a launcher started, or as many threads.
World world_of(const Config& config, int ranks) {
  World world = find_world(config);
  if (world.transport == World::Transport::local) world.size = world.local_size = ranks;
  return world;
}
std::vector<int> rank_counts(const Options& options) {
  const World world = find_world(options.config);
  return world.transport == World::Transport::local ? options.ranks : std::vector<int>{world.size};
}

/// NAME of .../NAME or .../NAME/store.
std::string name_of(const std::string& store) {
  const fs::path path = fs::path(store).lexically_normal();
  return (path.filename() == "store" ? path.parent_path().filename() : path.filename()).string();
}

void print(const Json& line) { std::cout << line.dump() << std::endl; }

template <class T>
T sum_over(Comm& comm, T value) {
  comm.all_reduce(Span<T>(&value, 1));
  return value;
}

StoreCounters sum_over(Comm& comm, StoreCounters counters) {
  for (const auto& [name, counter] : kStoreCounters) counters.*counter = sum_over(comm, counters.*counter);
  return counters;
}

Offset wire_bytes(const StoreCounters& counters) {
  return counters.id_bytes + counters.row_bytes + counters.gradient_bytes + counters.head_bytes;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// -------------------------------------------------------------------------------------------------------------- wire

/// One way of exchanging: bytes a step of all ranks; medians of a step's seconds.
struct Way {
  double bytes = 0;
  std::vector<double> transfer_s, exchange_s;  ///< transport alone; fetch and push, empty where that cannot be run
};

struct WireCase {
  const Options& options;
  std::string graph;
  const Batches& batches;
};

void report_wire(const WireCase& of, const StoreCounters& counters, const Comm& comm, const Way (&ways)[3]) {
  const char* names[] = {"rows", "rows, not deduplicated", "allreduce"};
  const char* formulas[] = {
      "remote distinct rows: 4 id, 4 dim out, 4 (dim + 1) home; vectors twice where a row is a centre too",
      "remote positions: 4 id, 8 dim; vectors twice for a walk's position",
      "2 tables x nodes x 4 (stride + 1) x 2 (ranks - 1)"};
  const double dense_s = median(ways[2].transfer_s), dense_exchange_s = median(ways[2].exchange_s);
  for (int w = 0; w < 3; ++w) {
    const Way& way = ways[w];
    const double transfer_s = median(way.transfer_s);
    Json line{{"bench", "exchange"},
              {"axis", "wire"},
              {"graph", of.graph},
              {"batches", of.batches.name},
              {"ranks", comm.size()},
              {"transport", comm.transport()},
              {"dim", of.batches.config.model.dim},
              {"step_walks", of.batches.config.training.step_walks},
              {"walk_length", of.batches.config.sampler.walk_length},
              {"method", names[w]},
              {"formula", formulas[w]},
              {"steps", of.options.steps},
              {"bytes_a_step", way.bytes},
              {"transfer_ms", 1e3 * transfer_s},
              {"transfer_less_than_allreduce", 1 - transfer_s / dense_s}};
    if (!way.exchange_s.empty()) {
      line["exchange_ms"] = 1e3 * median(way.exchange_s);
      line["exchange_less_than_allreduce"] = 1 - median(way.exchange_s) / dense_exchange_s;
    }
    for (const auto& [name, counter] : kStoreCounters)
      if (w == 0) line["counters"][name] = counters.*counter;
    print(line);
    std::fprintf(stderr, "%-14s %-6s %5d %-23s %10.2f %12.2f %8.0f %%", of.graph.c_str(), of.batches.name, comm.size(),
                 names[w], way.bytes / 1e6, 1e3 * transfer_s, 100 * (1 - transfer_s / dense_s));
    if (way.exchange_s.empty()) {
      std::fprintf(stderr, " %12s\n", "-");
    } else {
      const double exchange_s = median(way.exchange_s);
      std::fprintf(stderr, " %12.2f %8.0f %%\n", 1e3 * exchange_s, 100 * (1 - exchange_s / dense_exchange_s));
    }
  }
}

/// The three ways take turns, so that a machine that is slower for a while is so for all of them.
void measure_wire(const WireCase& of, const Csr& graph, Comm& comm) {
  const Config& config = of.batches.config;
  Config dense_config = config;
  dense_config.exchange.method = "allreduce";
  Exchanger rows(graph, config, comm), dense(graph, dense_config, comm);
  Replay replay(comm);
  const auto floats = 2 * graph.num_nodes() * (padded_stride(config.model.dim) + 1);
  Way ways[3];
  for (int step = -1; step < of.options.steps; ++step) {  // step -1 warms up, and says how much a step moves
    const StoreCounters before = sum_over(comm, rows.counters());
    const double rows_s = rows.step(step + 1);
    const StoreCounters after = sum_over(comm, rows.counters());
    const double dense_s = dense.step(step + 1);
    const Offset ids = after.id_bytes - before.id_bytes, fetched = after.row_bytes - before.row_bytes;
    const Offset pushed = after.gradient_bytes - before.gradient_bytes;
    const Offset plain = after.undeduplicated_bytes - before.undeduplicated_bytes;
    const Offset plain_ids = plain / (2 * config.model.dim * Offset(sizeof(float)) + sizeof(RowId));
    const double rows_transfer_s = replay.all_to_all({ids, fetched, pushed});
    const double plain_transfer_s = replay.all_to_all({plain_ids * Offset(sizeof(RowId)), plain / 2, plain / 2});
    const double dense_transfer_s = replay.all_reduce(floats);
    if (step < 0) continue;
    ways[0].transfer_s.push_back(rows_transfer_s), ways[0].exchange_s.push_back(rows_s);
    ways[1].transfer_s.push_back(plain_transfer_s);
    ways[2].transfer_s.push_back(dense_transfer_s), ways[2].exchange_s.push_back(dense_s);
  }
  const StoreCounters counters = sum_over(comm, rows.counters()), head = sum_over(comm, dense.counters());
  const double steps = of.options.steps + 1;
  ways[0].bytes = double(wire_bytes(counters)) / steps;
  ways[1].bytes = double(counters.undeduplicated_bytes) / steps;
  ways[2].bytes = double(wire_bytes(head)) / steps;
  if (comm.rank() == 0) report_wire(of, counters, comm, ways);
}

void wire(const Options& options) {
  std::vector<Graph> graphs;
  for (const std::string& store : options.stores) graphs.push_back(Graph::open(store));
  if (find_world(options.config).rank == 0)
    std::fprintf(stderr, "%-14s %-6s %5s %-23s %10s %12s %10s %12s %10s\n", "graph", "batch", "ranks", "method",
                 "MB/step", "transfer ms", "less", "exchange ms", "less");
  for (const int ranks : rank_counts(options)) {
    if (ranks < 2) throw Error(Fault::usage, "--ranks 1: one rank moves nothing; give 2 or more");
    // All graphs in one meeting of the ranks: processes that MPI started cannot meet again.
    run_ranks(world_of(options.config, ranks), options.config, [&](Comm& comm) {
      for (std::size_t g = 0; g < graphs.size(); ++g)
        for (const Batches& batches : batches_of(options))
          measure_wire({options, name_of(options.stores[g]), batches}, graphs[g].csr(), comm);
    });
  }
}

// -------------------------------------------------------------------------------------------------------------- hits

void count_hits(const Options& options, const std::string& name, const Csr& graph, const Batches& batches) {
  const Config& config = batches.config;
  MemoryLedger ledger{Device{}};
  const Exec exec{{}, hardware_threads(), nullptr, &ledger};
  const WalkTopology topology(graph, walk_rule(config), exec);
  const NegativeTable table(graph, config, 0, exec);
  const kernels::TileShape shape = tile_shape(config);
  const Offset walks = config.training.step_walks;
  std::vector<RowId> nodes(std::size_t(walks * shape.walk_length));
  std::vector<RowId> negatives(std::size_t(walks * shape.tiles_per_walk * shape.shared_negatives));
  Reads reads(graph.num_nodes());
  for (int step = 0; step < options.steps; ++step) {
    const kernels::WalkBatch batch{config.training.seed, 0, step * walks, walks, shape.walk_length};
    kernels::ops(exec).make_walks(topology.view(), batch, Span<RowId>(nodes), exec);
    kernels::ops(exec).draw_negatives(table.view(), batch, shape.tiles_per_walk, shape.shared_negatives,
                                      Span<RowId>(negatives), exec);
    reads.add(Span<const RowId>(nodes), Span<const RowId>(negatives), step);
  }
  std::fprintf(stderr, "%-14s %-6s", name.c_str(), batches.name);
  for (const auto& [kind, counts] : {std::pair("positions", &reads.all),
                                     {"walk positions", &reads.walks},
                                     {"distinct rows of a step", &reads.distinct}}) {
    Json line{{"bench", "exchange"},       {"axis", "hits"},           {"graph", name},
              {"rows", graph.num_nodes()}, {"arcs", graph.num_arcs()}, {"batches", batches.name},
              {"step_walks", walks},       {"steps", options.steps},   {"reads", kind}};
    for (const int percent : {1, 5, 10, 20}) {
      const double share = bench::share_of_first(*counts, percent / 100.0);
      line["share_of_hottest"][cat(percent, "%")] = share;
      std::fprintf(stderr, " %3.0f%s", 100 * share, percent == 20 ? "  " : "");
    }
    print(line);
  }
  std::fprintf(stderr, "\n");
}

void hits(const Options& options) {
  std::fprintf(stderr, "%-21s %-17s %-17s %-17s\n%-21s", "% of reads", " positions", " walk positions",
               " distinct in step", "in the hottest");
  for (int i = 0; i < 3; ++i) std::fprintf(stderr, "  1%%  5%% 10%% 20%% ");
  std::fprintf(stderr, "\n");
  const auto count = [&](const std::string& name, const Csr& graph) {
    for (const Batches& batches : batches_of(options)) count_hits(options, name, graph, batches);
  };
  for (const std::string& store : options.stores) count(name_of(store), Graph::open(store).csr());
  if (options.rmat_nodes == 0) return;
  GeneratorOptions rmat;
  rmat.nodes = options.rmat_nodes, rmat.edges = 16 * options.rmat_nodes, rmat.threads = hardware_threads();
  count("R-MAT", generate(rmat).csr());
}

// ------------------------------------------------------------------------------------------------------------- steps

/// What a run's steps cost: means over ranks and steps, in milliseconds.
struct StepCost {
  double step_ms = 0, cpu_ms = 0;  ///< cpu: of all ranks together
  Json line;
  std::string row;
};

/// Whole training of config's walks; the same on every rank but for the texts, which rank 0 has.
StepCost cost_of_steps(const std::string& graph_name, const Csr& graph, const Config& config, Comm& comm) {
  const int threads = std::max(1, hardware_threads() / comm.size());
  RankTrainer trainer(graph, config, comm, Device{}, threads);
  comm.barrier();
  const double start_s = now_s(), start_cpu_s = bench::cpu_seconds(), start_calls_s = comm.traffic().waiting_s;
  Offset pairs = 0;
  while (!trainer.done()) pairs += trainer.step().pairs;
  comm.barrier();
  const double seconds = now_s() - start_s, own_cpu_s = bench::cpu_seconds() - start_cpu_s;
  const bool shares_process = std::string(comm.transport()) == "local";
  const double in_calls_s = sum_over(comm, comm.traffic().waiting_s - start_calls_s);
  const StoreCounters counters = sum_over(comm, trainer.counters());
  const auto steps = double(trainer.steps_done());
  const double ms = 1e3 / (steps * comm.size());

  StepCost cost;
  cost.step_ms = 1e3 * seconds / steps;
  cost.cpu_ms = 1e3 * (shares_process ? own_cpu_s : sum_over(comm, own_cpu_s)) / steps;
  cost.line = {{"bench", "exchange"},
               {"axis", "steps"},
               {"graph", graph_name},
               {"ranks", comm.size()},
               {"transport", comm.transport()},
               {"threads_a_rank", threads},
               {"staleness", config.training.staleness},
               {"step_walks", config.training.step_walks},
               {"steps", steps},
               {"pairs", pairs},
               {"step_ms", cost.step_ms},
               {"cpu_ms", cost.cpu_ms},
               {"in_calls_ms", ms * in_calls_s},
               {"wire_bytes_a_step", double(wire_bytes(counters)) / steps}};
  char cell[80];
  std::snprintf(cell, sizeof cell, "%5d %-6s %5d %8.1f %8.1f", comm.size(), comm.transport(), config.training.staleness,
                cost.step_ms, cost.cpu_ms);
  cost.row = cell;
  for (const StageTime& stage : trainer.stages()) {
    const double busy_s = sum_over(comm, stage.busy_s), waiting_s = sum_over(comm, stage.waiting_s);
    cost.line["stages"][stage.name] = {{"busy_ms", ms * busy_s}, {"waiting_ms", ms * waiting_s}};
    std::snprintf(cell, sizeof cell, " %8.1f %7.1f", ms * busy_s, ms * waiting_s);
    cost.row += cell;
  }
  std::snprintf(cell, sizeof cell, " %8.1f", ms * in_calls_s);
  cost.row += cell;
  return cost;
}

struct StepsCase {
  int ranks, staleness;
  std::vector<StepCost> rounds{};
};

/// Cases take turns, so that a machine that is slower for a while is so for all of them; each prints its round of
/// median step time.
void steps_of(const Options& options, const std::string& store) {
  const Graph graph = Graph::open(store);
  Config config = batches_of(options)[0].config;
  config.sampler.walks_per_node = options.walks_per_node;
  config.exchange.method = "rows";
  std::vector<StepsCase> cases;
  for (const int staleness : {0, 1})
    for (const int ranks : rank_counts(options)) cases.push_back({ranks, staleness});
  const World world = find_world(config);
  const bool prints = world.transport == World::Transport::local || world.rank == 0;
  // One group of ranks for all rounds where ranks are processes: they cannot meet again.
  const auto run = [&](Comm& comm, StepsCase& of) {
    Config own = config;
    own.training.staleness = of.staleness;
    StepCost cost = cost_of_steps(name_of(store), graph.csr(), own, comm);
    if (comm.rank() == 0) of.rounds.push_back(std::move(cost));
  };
  if (world.transport == World::Transport::local) {
    for (int round = 0; round < options.rounds; ++round)
      for (StepsCase& of : cases) run_ranks(world_of(config, of.ranks), config, [&](Comm& comm) { run(comm, of); });
  } else {
    run_ranks(world, config, [&](Comm& comm) {
      for (int round = 0; round < options.rounds; ++round)
        for (StepsCase& of : cases) run(comm, of);
    });
  }
  for (StepsCase& of : cases) {
    if (!prints) continue;
    auto& rounds = of.rounds;
    const auto middle = rounds.begin() + std::ptrdiff_t(rounds.size() / 2);
    std::nth_element(rounds.begin(), middle, rounds.end(),
                     [](const StepCost& a, const StepCost& b) { return a.step_ms < b.step_ms; });
    double least_cpu_ms = middle->cpu_ms;
    for (const StepCost& cost : rounds) least_cpu_ms = std::min(least_cpu_ms, cost.cpu_ms);
    middle->line["rounds"] = options.rounds, middle->line["least_cpu_ms"] = least_cpu_ms;
    print(middle->line);
    std::fprintf(stderr, "%s\n", middle->row.c_str());
  }
}

void steps(const Options& options) {
  if (options.stores.size() != 1)
    throw Error(Fault::usage, cat("steps: ", options.stores.size(), " graph stores given; give one"));
  if (find_world(options.config).rank == 0)
    std::fprintf(stderr, "ms a step; a stage: busy, waiting\n%5s %-6s %5s %8s %8s %16s %16s %16s %16s %8s\n", "ranks",
                 "by", "stale", "step", "cpu", "sample", "fetch", "compute", "push", "in calls");
  steps_of(options, options.stores[0]);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    set_quiet(true);
    const Options options = read_options(argc, argv);
    if (options.axis == "wire") wire(options);
    if (options.axis == "hits") hits(options);
    if (options.axis == "steps") steps(options);
    return 0;
  } catch (const Error& error) {
    log_error(error.what());
    return int(error.fault);
  }
}
