#include "graphscale/train.hpp"

#include <algorithm>

#include "src/train/session.hpp"

namespace gs {
namespace {

void log_end(const TrainSummary& summary, const fs::path& run) {
  const std::string of_best =
      summary.validations == 0
          ? ""
          : cat(", of epoch ", summary.best_epoch, ", MRR ", summary.best_mrr, ", the best of ", summary.validations,
                " validations in ", human_seconds(summary.validation_seconds));
  log_info(cat(summary.stopped ? "stopped by a signal: " : "", with_commas(summary.pairs), " pairs in ",
               human_seconds(summary.seconds), " (",
               human_count(double(summary.pairs) / std::max(summary.seconds, 1e-9)), " pairs/s), embeddings in ",
               (run / kEmbeddings).string(), of_best));
}

TrainSummary train_in_place(const Graph& graph, const std::string& graph_path, const Config& config,
                            const fs::path& run, bool overwrite) {
  check_place(graph, config, run, overwrite);
  const int threads = config.run.threads > 0 ? config.run.threads : hardware_threads();
  const Device device = choose_device(config.run.device);
  log_graph(graph, graph_path, config);
  log_device(config, device, threads);
  const std::vector<Config> parts = parts_of(config);
  std::optional<Validation> validation;
  if (!config.eval.valid.empty()) validation.emplace(graph, config);
  const WarmStart start(graph, config);
  start.log();
  const auto make_trainer = [&](std::size_t part) {
    return std::make_unique<Trainer>(graph.csr(), parts[part], device, threads,
                                     start.rows(part, parts[part].model.dim));
  };
  auto trainer = make_trainer(0);  // refuses what cannot be trained
  log_info(cat("memory: ", human_bytes(double(trainer->plan().total_bytes())), " on ", to_string(device), ", ",
               with_commas(trainer->plan().step_walks), " ", unit_name(config), " a step"));
  return with_record(config, run, [&](MetricsFile& metrics, TrainSummary& summary) {
    Outcome outcome(graph, config, run, parts.size());
    std::vector<float> copy;
    MemoryLedger ledger(device);  // of validations
    for (std::size_t p = 0; p < parts.size() && !summary.stopped; ++p) {
      if (p > 0) trainer.reset(), trainer = make_trainer(p);
      const auto keep = [&](Rows<const float> table) { outcome.keep(p, table); };
      std::optional<Validator> validator;
      if (validation)
        validator.emplace(*validation, config, Exec{device, threads, nullptr, &ledger}, metrics, summary, keep);
      run_steps(*trainer, parts[p], metrics, false, summary, [&] {
        if (!validator->goes_on(*trainer, trainer->table(copy))) trainer->end();
        return validator->note();
      });
      if (!validator || !validator->has_kept()) keep(trainer->table(copy));
    }
    outcome.finish();
    metrics.write_end(summary);
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
