#include "graphscale/train.hpp"

#include <algorithm>

#include "src/train/session.hpp"

namespace gs {
namespace {

void log_end(const TrainSummary& summary, const fs::path& run) {
  log_info(cat(summary.stopped ? "stopped by a signal: " : "", with_commas(summary.pairs), " pairs in ",
               human_seconds(summary.seconds), " (",
               human_count(double(summary.pairs) / std::max(summary.seconds, 1e-9)), " pairs/s), embeddings in ",
               (run / kEmbeddings).string()));
}

TrainSummary train_in_place(const Graph& graph, const std::string& graph_path, const Config& config,
                            const fs::path& run, bool overwrite) {
  check_place(graph, config, run, overwrite);
  const int threads = config.run.threads > 0 ? config.run.threads : hardware_threads();
  const Device device = choose_device(config.run.device);
  log_graph(graph, graph_path, config);
  log_device(config, device, threads);
  const std::vector<Config> parts = parts_of(config);
  auto trainer = std::make_unique<Trainer>(graph.csr(), parts[0], device, threads);  // refuses what cannot be trained
  log_info(cat("memory: ", human_bytes(double(trainer->plan().total_bytes())), " on ", to_string(device), ", ",
               with_commas(trainer->plan().step_walks), " ", unit_name(config), " a step"));
  return with_record(config, run, [&](MetricsFile& metrics) {
    TrainSummary summary;
    std::vector<float> copy;
    if (parts.size() == 1) {
      run_steps(*trainer, config, metrics, false, summary);
      const Rows<const float> table = trainer->table(copy);
      save_vectors(run, {table.dim, graph, trainer->dense_rows(), source_of(table)});
    } else {
      SideBySide joined(graph.csr().num_nodes(), config.model.dim, parts.size());
      for (std::size_t p = 0; p < parts.size() && !summary.stopped; ++p) {
        if (p > 0) trainer.reset(), trainer = std::make_unique<Trainer>(graph.csr(), parts[p], device, threads);
        run_steps(*trainer, parts[p], metrics, false, summary);
        source_of(trainer->table(copy))(0, joined.part(p));
        joined.normalize(p);
      }
      save_vectors(run, {config.model.dim, graph, 0, source_of(joined.rows())});
    }
    metrics.write_end(summary);
    return summary;
  });
}

}  // namespace

TrainSummary train(const Graph& graph, const std::string& graph_path, const Config& config, const fs::path& run,
                   bool overwrite) {
  const World world = find_world(config);
  const TrainSummary summary = world.size == 1 && !needs_exchange(config)
                                   ? train_in_place(graph, graph_path, config, run, overwrite)
                                   : train_ranks(graph, graph_path, config, world, run, overwrite);
  if (world.rank == 0) log_end(summary, run);
  return summary;
}

}  // namespace gs
