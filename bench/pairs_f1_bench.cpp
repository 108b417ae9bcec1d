// Trains a store by the pair-at-a-time kernel, as `graphscale train` does by tiles: same walks, windows and schedule,
// k negatives of each pair's own. Saves RUN/embeddings for `graphscale eval`, prints one JSON line.
//
//   pairs_f1_bench --graph STORE --out RUN [--config FILE] [--threads N]
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "graphscale/train.hpp"

#include "bench/support/measure.hpp"

namespace {

using namespace gs;

struct Options {
  std::string graph, run, config_file;
  int threads = hardware_threads();
};

Options read_options(int argc, char** argv) {
  Options options;
  CLI::App app("Train by the pair-at-a-time kernel");
  app.add_option("--graph", options.graph, "graph store")->required();
  app.add_option("--out", options.run, "folder to make, for embeddings/")->required();
  app.add_option("--config", options.config_file, "configuration file");
  app.add_option("--threads", options.threads, "CPU threads");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return options;
}

/// The training loop of Trainer with train_pairs in the place of train_tiles, on the CPU.
class PairTrainer {
 public:
  PairTrainer(const Csr& graph, const Config& config, int threads)
      : config_(config),
        shape_(tile_shape(config)),
        ledger_(Device{}),
        exec_{Device{}, threads, nullptr, &ledger_},
        step_walks_(
            plan_training(config, {graph.num_nodes(), graph.num_arcs(), !graph.weights.empty()}, Device{}).step_walks),
        topology_(graph, walk_rule(config), exec_),
        negative_table_(graph, config, 0, exec_),
        model_(ModelShape::skip_gram(graph.num_nodes(), shape_.dim), config.training.seed, exec_),
        nodes_(ledger_, step_walks_ * shape_.walk_length, "step: walks"),
        results_(ledger_, step_walks_ * shape_.tiles_per_walk, "step: results"),
        totals_(ledger_, 1, "step: totals"),
        walks_per_epoch_(graph.num_nodes() * config.sampler.walks_per_node) {}

  Offset walks_total() const { return walks_per_epoch_ * config_.training.epochs; }
  Rows<const float> embeddings() const { return model_.centres(); }
  kernels::TrainTotals totals() const { return *totals_.data(); }

  /// Trains the next walks from walk `done` of the run on; returns how many.
  Offset step(Offset done) {
    const kernels::Ops& ops = kernels::ops(exec_);
    const Offset first = done % walks_per_epoch_, walks = std::min(step_walks_, walks_per_epoch_ - first);
    const kernels::WalkBatch batch{config_.training.seed, std::uint32_t(done / walks_per_epoch_), first, walks,
                                   shape_.walk_length};
    const Span<RowId> nodes = nodes_.span().subspan(0, walks * shape_.walk_length);
    const Span<kernels::TileResult> results = results_.span().subspan(0, walks * shape_.tiles_per_walk);
    const double rate = learning_rate_at(config_.training, double(done) / double(walks_total()));
    ops.make_walks(topology_.view(), batch, nodes, exec_);
    kernels::TileBatch pairs;
    pairs.shape = shape_, pairs.walks = batch, pairs.nodes = nodes, pairs.results = results;
    pairs.centres = model_.centres(), pairs.contexts = model_.contexts(), pairs.learning_rate = float(rate);
    ops.train_pairs(pairs, negative_table_.view().slots, exec_);
    ops.add_totals(results, totals_.span(), exec_);
    return walks;
  }

 private:
  Config config_;
  kernels::TileShape shape_;
  MemoryLedger ledger_;
  Exec exec_;
  Offset step_walks_;
  WalkTopology topology_;
  NegativeTable negative_table_;
  Model model_;
  Buffer<RowId> nodes_;
  Buffer<kernels::TileResult> results_;
  Buffer<kernels::TrainTotals> totals_;
  Offset walks_per_epoch_;
};

void run(const Options& options) {
  const Config config = read_config(options.config_file, {});
  const Graph graph = Graph::open(options.graph);
  PairTrainer trainer(graph.csr(), config, options.threads);
  const double start_s = now_s(), start_cpu_s = bench::cpu_seconds();
  for (Offset done = 0; done < trainer.walks_total();) done += trainer.step(done);
  const double seconds = now_s() - start_s, cpu_seconds = bench::cpu_seconds() - start_cpu_s;
  fs::create_directories(options.run);
  save_embeddings(fs::path(options.run) / "embeddings", trainer.embeddings(), graph.names());
  const kernels::TrainTotals totals = trainer.totals();
  std::cout << nlohmann::ordered_json{{"bench", "pairs_f1"},
                                      {"threads", options.threads},
                                      {"walks", trainer.walks_total()},
                                      {"pairs", totals.pairs},
                                      {"loss", totals.loss / double(totals.pairs)},
                                      {"seconds", seconds},
                                      {"cpu_seconds", cpu_seconds},
                                      {"load", cpu_seconds / (seconds * options.threads)},
                                      {"pairs_per_s", double(totals.pairs) / seconds}}
                   .dump()
            << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  try {
    set_quiet(true);
    run(read_options(argc, argv));
    return 0;
  } catch (const Error& error) {
    log_error(error.what());
    return int(error.fault);
  }
}
