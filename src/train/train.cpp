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
               (run / kEmbeddings).string(), of_best,
               summary.stopped && !list_checkpoints(run).empty() ? "; --resume goes on" : ""));
}

TrainSummary train_in_place(const Graph& graph, const std::string& graph_path, const Config& given, const fs::path& run,
                            Existing existing) {
  check_place(graph, given, run, existing);
  std::shared_ptr<const Checkpoint> resumed = existing == Existing::resume ? find_resumed(run, graph, given) : nullptr;
  const Config config = resumed ? resumed_config(resumed->state(), given) : given;
  if (resumed && is_complete(resumed->state(), config)) return left_as_it_is(run, resumed->state());
  const int threads = config.run.threads > 0 ? config.run.threads : hardware_threads();
  const Device device = choose_device(config.run.device);
  log_graph(graph, graph_path, config);
  log_device(config, device, threads);
  const std::vector<Config> parts = parts_of(config);
  std::optional<Validation> validation;
  if (!config.eval.valid.empty()) validation.emplace(graph, config);
  WarmStart start(graph, config, resumed);
  start.log();
  const bool goes_on = resumed != nullptr;
  const RunState from = goes_on ? resumed->state() : RunState();
  const auto make_trainer = [&](std::size_t part) {
    auto trainer =
        std::make_unique<Trainer>(graph.csr(), parts[part], device, threads, start.rows(part, parts[part].model.dim));
    if (goes_on && int(part) == from.part) trainer->resume(from);
    return trainer;
  };
  const std::size_t first_part = std::size_t(from.part);
  auto trainer = make_trainer(first_part);  // refuses what cannot be trained
  log_info(cat("memory: ", human_bytes(double(trainer->plan().total_bytes())), " on ", to_string(device), ", ",
               with_commas(trainer->plan().step_walks), " ", unit_name(config), " a step"));
  return with_record(config, run, goes_on ? &from : nullptr, [&](MetricsFile& metrics, TrainSummary& summary) {
    Outcome outcome(graph, config, run, parts.size());
    if (resumed) outcome.restore(resumed->finished());
    resumed.reset(), start.drop_resumed();
    Checkpoints checkpoints(graph, config, run, nullptr, 1, &metrics, from);
    std::vector<float> copy;
    MemoryLedger ledger(device);  // of validations
    for (std::size_t p = first_part; p < parts.size() && !summary.stopped; ++p) {
      if (p > first_part) trainer.reset(), trainer = make_trainer(p);
      const auto keep = [&](Rows<const float> table) { outcome.keep(p, table); };
      std::optional<Validator> validator;
      if (validation)
        validator.emplace(*validation, config, Exec{device, threads, nullptr, &ledger}, metrics, summary, keep);
      const bool resumes = goes_on && p == first_part;
      if (validator && resumes && outcome.is_kept() && !validator->restore(from)) trainer->end();
      const auto save = [&](bool beside) {
        checkpoints.save(*trainer, state_of(int(p), summary, validator, *trainer), outcome.finished(), beside);
      };
      run_steps(*trainer, parts[p], metrics, false, summary,
                {[&] {
                   if (!validator->goes_on(*trainer, trainer->table(copy))) trainer->end();
                   return validator->note();
                 },
                 [&] {
                   checkpoints.look(*trainer);
                   if (checkpoints.is_due(*trainer, validator && validator->is_best_at(*trainer))) save(true);
                 }});
      const bool has_kept = validator && validator->has_kept();
      if (parts.size() > 1 && !has_kept) keep(trainer->table(copy));
      save(false);
      if (parts.size() == 1 && !has_kept) keep(trainer->table(copy));
    }
    outcome.finish();
    if (!summary.stopped) checkpoints.mark_complete();
    summary.checkpoint_error = checkpoints.error();
    metrics.write_end(summary);
  });
}

}  // namespace

TrainSummary train(const Graph& graph, const std::string& graph_path, const Config& config, const fs::path& run,
                   Existing existing) {
  const World world = find_world(config);
  const TrainSummary summary = world.size == 1 && !needs_exchange(config)
                                   ? train_in_place(graph, graph_path, config, run, existing)
                                   : train_ranks(graph, graph_path, config, world, run, existing);
  if (world.rank > 0 || summary.was_complete) return summary;
  log_end(summary, run);
  if (!summary.checkpoint_error.empty())
    throw Error(Fault::output, cat("the embeddings are saved, but the run cannot be resumed where it ended: ",
                                   summary.checkpoint_error));
  return summary;
}

}  // namespace gs
