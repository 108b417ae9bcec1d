#include "graphscale/train.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <future>

#include "src/train/metrics.hpp"
#include "src/train/run_folder.hpp"

namespace gs {
namespace {

/// Nodes that no walk leaves and none reaches: their vectors stay as they were drawn.
Offset count_untrained(const Csr& graph, bool weighted) {
  weighted = weighted && !graph.weights.empty();
  std::vector<bool> trained(std::size_t(graph.num_nodes()), false);
  for (Offset row = 0; row < graph.num_nodes(); ++row)
    for (Offset arc = graph.offsets[row]; arc < graph.offsets[row + 1]; ++arc)
      if (!weighted || graph.weights[arc] > 0)
        trained[std::size_t(row)] = trained[std::size_t(graph.targets[arc])] = true;
  return Offset(std::count(trained.begin(), trained.end(), false));
}

std::string note_of(const Training::Step& since, double seconds) {
  if (since.pairs == 0) return "no pair reported yet";
  char text[96];
  std::snprintf(text, sizeof text, "%s pairs/s, loss %.4f, lr %.5f", human_count(double(since.pairs) / seconds).c_str(),
                since.loss_a_pair(), since.learning_rate);
  return text;
}

void add(Training::Step& sum, const Training::Step& step) {
  sum.walks += step.walks, sum.pairs += step.pairs, sum.loss += step.loss, sum.learning_rate = step.learning_rate;
  sum.counters += step.counters;
}

/// Runs a training to its end or to a signal, with progress and metrics; stops_itself: it looks for signals itself.
TrainSummary run_steps(Training& training, const Config& config, MetricsFile& metrics, bool stops_itself) {
  TrainSummary summary;
  Training::Step since, tail;  // since the last line of metrics; over the last tenth of the run
  const Offset walks_of_run = training.walks_total();
  const double start_s = now_s();
  double since_s = start_s;
  Progress progress("train", "walks", walks_of_run);
  const auto stopped = [&] { return !stops_itself && stop_requested(); };
  while (!training.done() && !stopped()) {
    const Training::Step step = training.step();
    summary.pairs += step.pairs, summary.counters += step.counters;
    add(since, step);
    if (training.walks_done() * 10 > walks_of_run * 9) add(tail, step);
    const double spent_s = std::max(now_s() - since_s, 1e-9);
    progress.advance(step.walks, note_of(since, spent_s));
    if (training.steps_done() % config.metrics.every == 0 || training.done() || stopped()) {
      metrics.write(training, since, spent_s, now_s() - start_s);
      if (tail.pairs == 0) summary.loss = since.loss_a_pair();  // of a run stopped before its last tenth
      since = {}, since_s = now_s();
    }
  }
  summary.stopped = training.walks_done() < walks_of_run;
  summary.seconds = now_s() - start_s;
  summary.steps = training.steps_done(), summary.walks = training.walks_done();
  if (tail.pairs > 0) summary.loss = tail.loss_a_pair();
  if (!summary.stopped && summary.steps > 0) progress.finish(cat("loss ", summary.loss));
  return summary;
}

/// The error of a run that began, with what is left of it in its folder.
Error with_folder(const Error& error, const fs::path& run) {
  return Error(error.fault, cat(error.what(), " (", run.string(), " keeps ", kConfigFile, " and ", kMetricsFile,
                                fs::exists(run / kEmbeddings) ? " beside the embeddings of the earlier run" : "",
                                "; train into it again, or remove it)"));
}

/// run(metrics) trains and saves. An error leaves the run's folder with its record, and embeddings of an earlier run.
template <class Run>
TrainSummary with_record(const Config& config, const fs::path& run, const Run& body) {
  make_run_folder(run);
  MetricsFile metrics(run / kMetricsFile);
  write_text(run / kConfigFile, to_json(config));
  try {
    return body(metrics);
  } catch (const Error& error) {
    metrics.write_failure(error.what());
    throw with_folder(error, run);
  } catch (const std::exception& error) {
    metrics.write_failure(error.what());
    throw;
  }
}

/// Before anything is loaded onto devices or trained. Throws output.
void check_place(const Graph& graph, const Config& config, const fs::path& run, bool overwrite) {
  check_run_folder(run, overwrite);
  check_space(run, graph.csr().num_nodes(), config.model.dim);
}

void log_graph(const Graph& graph, const std::string& graph_path, const Config& config) {
  log_info(cat("graph: ", graph_path, " ", graph.info().id, ", ", with_commas(graph.csr().num_nodes()), " nodes, ",
               with_commas(graph.csr().num_arcs()), " arcs"));
  if (const Offset untrained = count_untrained(graph.csr(), config.sampler.weighted))
    log_info(cat("nodes never trained: ", with_commas(untrained), " (no edge",
                 graph.csr().weights.empty() ? "" : " of a weight above 0", "); their vectors stay as drawn"));
}

void log_device(const Config& config, Device device, int threads) {
  log_info(cat("device: ", to_string(device), " (", describe(device), ")",
               device.is_cuda() ? "" : cat(", ", threads, threads == 1 ? " thread" : " threads")));
  if (!config.training.deterministic && (threads > 1 || device.is_cuda()))
    log_info("writers share the tables without locks: last bits vary between runs (--deterministic fixes them)");
}

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
  Trainer trainer(graph.csr(), config, device, threads);  // refuses what cannot be trained before anything is written
  log_info(cat("memory: ", human_bytes(double(trainer.plan().total_bytes())), " on ", to_string(device), ", ",
               with_commas(trainer.plan().step_walks), " walks a step"));
  return with_record(config, run, [&](MetricsFile& metrics) {
    const TrainSummary summary = run_steps(trainer, config, metrics, false);
    std::vector<float> copy;
    const Rows<const float> rows = trainer.embeddings(copy);
    replace_embeddings(run, rows.dim, source_of(rows), graph.names());
    metrics.write_end(summary);
    return summary;
  });
}

// ------------------------------------------------------------------------------------------------------ many ranks

/// What must be equal on all ranks: the build, the graph and every option but those of a rank's own machine.
std::vector<std::pair<std::string, std::string>> facts_of(const Graph& graph, const Config& config) {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"program", kVersion},
      {"graph content", graph.info().content_hash},
      {"graph nodes", cat(graph.csr().num_nodes())},
      {"graph arcs", cat(graph.csr().num_arcs())},
  };
  const auto own = [](const std::string& name) {
    return name == "run.device" || name == "run.threads" || name == "exchange.address";
  };
  each_option(config, [&](const char* name, const auto& value, const Option&) {
    if (!own(name)) facts.emplace_back(name, cat(value));
  });
  return facts;
}

/// A GPU of its own for each rank of this machine where there are enough, as run.device allows.
Device device_of_rank(const Config& config, const World& world, int rank) {
  const std::string& name = config.run.device;
  const int index = world.transport == World::Transport::local ? rank : world.local_rank;
  if (name == "cpu" || name.rfind("cuda:", 0) == 0) return choose_device(name);
  if (name == "auto" && usable_gpus() < world.local_size) {
    if (index == 0) log_info(cat("using the CPU: ", usable_gpus(), " usable GPUs for ", world.local_size, " ranks"));
    return {};
  }
  return choose_device(cat("cuda:", index));
}

void log_ranks(const RankTrainer& trainer, const Csr& graph, const World& world, const Comm& comm) {
  const Placement::Balance balance = trainer.placement().balance(graph);
  log_info(cat("ranks: ", comm.size(), " by ", comm.transport(), ", ", world.local_size, " on this machine; rows ",
               with_commas(balance.least_rows), " to ", with_commas(balance.most_rows), " a rank, arcs ",
               with_commas(balance.least_arcs), " to ", with_commas(balance.most_arcs), ", ",
               std::lround(100 * balance.inside_share), " % of arcs inside a rank"));
  const RankPlan& plan = trainer.plan();
  log_info(cat("memory: rank 0 ", human_bytes(double(plan.total_bytes(Tier::device))), " on ", to_string(plan.device),
               ", ", human_bytes(double(plan.total_bytes(Tier::host))), " of cold rows and graph in host memory, ",
               with_commas(plan.shape.hot_rows), " hot rows, ", with_commas(plan.step_walks), " walks a step"));
}

void log_stages(const RankTrainer& trainer) {
  double busy_s = 0;
  for (const StageTime& stage : trainer.stages()) {
    char line[96];
    std::snprintf(line, sizeof line, "stage %-8s busy %8.2f s (%3.0f %%), waiting %8.2f s", stage.name, stage.busy_s,
                  100 * stage.busy_s / std::max(trainer.seconds(), 1e-9), stage.waiting_s);
    log_info(line);
    busy_s += stage.busy_s;
  }
  char line[96];
  std::snprintf(line, sizeof line, "stages overlapped %.2f s of %.2f s", std::max(0.0, busy_s - trainer.seconds()),
                trainer.seconds());
  log_info(line);
}

/// Of a rank that misses another: how far they had come together.
template <class Body>
void naming_last_step(const RankTrainer& trainer, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    if (error.fault != Fault::comm) throw;
    throw Error(Fault::comm, cat(error.what(), "; last finished step: ", trainer.steps_done()));
  }
}

/// All ranks step; the embeddings come to rank 0, which writes them.
void serve_rank(RankTrainer& trainer, const Csr& graph, int dim, Comm& comm) {
  naming_last_step(trainer, [&] {
    while (!trainer.done()) trainer.step();
    for (Offset first = 0; first < graph.num_nodes(); first += kSaveBlock)
      trainer.gather(first, {nullptr, std::min(kSaveBlock, graph.num_nodes() - first), dim, dim});
    wait_for_work(comm, 0, {});
    comm.barrier();  // which rank 0 does not come to where it could not write
  });
}

/// What is left to write once the last block is gathered may take longer than the others wait for a call.
void save_gathered(RankTrainer& trainer, const Graph& graph, int dim, const fs::path& run, Comm& comm) {
  std::promise<void> gathered;
  const auto source = [&](Offset first, Rows<float> rows) {
    trainer.gather(first, rows);
    if (first + rows.count == graph.csr().num_nodes()) gathered.set_value();
  };
  std::future<void> saved = std::async(std::launch::async, [&] {
    try {
      replace_embeddings(run, dim, source, graph.names());
    } catch (...) {
      try {
        gathered.set_exception(std::current_exception());
      } catch (const std::future_error&) {  // it was gathered, and `saved` has the error
      }
      throw;
    }
  });
  gathered.get_future().get();
  wait_for_work(comm, 0, [&] { saved.get(); });
}

TrainSummary lead_ranks(RankTrainer& trainer, const Graph& graph, const Config& config, const fs::path& run,
                        Comm& comm) {
  return with_record(config, run, [&](MetricsFile& metrics) {
    TrainSummary summary;
    naming_last_step(trainer, [&] {
      summary = run_steps(trainer, config, metrics, true);
      log_stages(trainer);
      save_gathered(trainer, graph, config.model.dim, run, comm);
      comm.barrier();
      metrics.write_end(summary, &trainer);
    });
    return summary;
  });
}

TrainSummary train_ranks(const Graph& graph, const std::string& graph_path, const Config& config, const World& world,
                         const fs::path& run, bool overwrite) {
  TrainSummary summary;
  run_ranks(world, config, [&](Comm& comm) {
    handshake(comm, facts_of(graph, config));
    const bool leads = comm.rank() == 0;
    if (leads) check_place(graph, config, run, overwrite);
    const int all_threads = config.run.threads > 0 ? config.run.threads * world.local_size : hardware_threads();
    const int threads = std::max(1, all_threads / world.local_size);
    const Device device = device_of_rank(config, world, comm.rank());
    wait_for_work(comm, 0, [&] { log_graph(graph, graph_path, config); });
    if (leads) log_device(config, device, threads);
    RankTrainer trainer(graph.csr(), config, comm, device, threads);
    comm.barrier();  // a rank that cannot begin ends the others before anything is written
    wait_for_work(comm, 0, [&] { log_ranks(trainer, graph.csr(), world, comm); });
    if (leads) {
      summary = lead_ranks(trainer, graph, config, run, comm);
    } else {
      serve_rank(trainer, graph.csr(), config.model.dim, comm);
    }
  });
  return summary;
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
