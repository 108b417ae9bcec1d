// Training as one of many ranks: what they agree on first, and how rank 0 gathers and saves.
#include <cmath>
#include <cstdio>
#include <future>

#include "src/train/session.hpp"

namespace gs {
namespace {

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

/// What is left to write once the last block is gathered may take longer than the others wait for a call.
void save_gathered(RankTrainer& trainer, const Graph& graph, int dim, const fs::path& run, Comm& comm) {
  std::promise<void> gathered;
  Offset left = trainer.dense_rows() + graph.csr().num_nodes();
  const auto source = [&](Offset first, Rows<float> rows) {
    trainer.gather(first, rows);
    left -= rows.count;
    if (left == 0) gathered.set_value();
  };
  std::future<void> saved = std::async(std::launch::async, [&] {
    try {
      save_vectors(run, {dim, graph, trainer.dense_rows(), source});
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

/// What the other ranks do meanwhile: the same blocks in the same order.
void serve_gathered(RankTrainer& trainer, Offset nodes, int dim, Comm& comm) {
  const Offset dense = trainer.dense_rows();
  for (const auto& [from, count] : {std::pair<Offset, Offset>{dense, nodes}, {0, dense}})
    for (Offset first = 0; first < count; first += kSaveBlock)
      trainer.gather(from + first, {nullptr, std::min(kSaveBlock, count - first), dim, dim});
  wait_for_work(comm, 0, {});
}

/// The ranks' trainings, one after another. Rank 0 leads, the others serve: they make the same calls of comm.
class RankSession {
 public:
  RankSession(const Graph& graph, const Config& config, Comm& comm, Device device, int threads)
      : graph_(graph),
        config_(config),
        parts_(parts_of(config)),
        comm_(comm),
        device_(device),
        threads_(threads),
        start_(graph, config) {
    wait_for_work(comm, 0, [&] {
      start_.log();
      if (!config.eval.valid.empty()) validation_.emplace(graph, config);
    });
    start(0);
  }

  const RankTrainer& trainer() const { return *trainer_; }

  /// All ranks step; the vectors come to rank 0, which writes them.
  void serve() {
    naming_last_step([&] {
      for (std::size_t p = 0; p < parts_.size(); ++p) {
        if (p > 0) start(p);
        bool has_kept = false;
        while (!trainer_->done()) {
          trainer_->step();
          if (!is_validating()) continue;
          gather_table();
          wait_for_work(comm_, 0, {});
          agree_to_go_on(true);
          has_kept = true;
        }
        if (!has_kept && parts_.size() > 1) gather_table();
        if (!has_kept && parts_.size() == 1)
          serve_gathered(*trainer_, graph_.csr().num_nodes(), config_.model.dim, comm_);
        if (trainer_->stopped()) break;
      }
      if (parts_.size() > 1) wait_for_work(comm_, 0, {});
      comm_.barrier();  // which rank 0 does not come to where it could not write
    });
  }

  TrainSummary lead(const fs::path& run) {
    return with_record(config_, run, [&](MetricsFile& metrics, TrainSummary& summary) {
      naming_last_step([&] {
        Outcome outcome(graph_, config_, run, parts_.size());
        for (std::size_t p = 0; p < parts_.size() && !summary.stopped; ++p) {
          if (p > 0) start(p);
          const auto keep = [&](Rows<const float> table) { outcome.keep(p, table); };
          const bool has_kept = lead_part(parts_[p], metrics, summary, keep);
          if (!has_kept && parts_.size() > 1) keep(gather_table());
          if (!has_kept && parts_.size() == 1) save_gathered(*trainer_, graph_, config_.model.dim, run, comm_);
        }
        if (parts_.size() > 1) wait_for_work(comm_, 0, [&] { outcome.finish(); });
        comm_.barrier();
        metrics.write_end(summary, trainer_.get());
      });
    });
  }

 private:
  void start(std::size_t part) {
    trainer_.reset();
    trainer_ = std::make_unique<RankTrainer>(graph_.csr(), parts_[part], comm_, device_, threads_,
                                             start_.rows(part, parts_[part].model.dim));
  }

  /// Of a rank that misses another: how far they had come together. Between two parts there is no trainer.
  template <class Body>
  void naming_last_step(const Body& body) const {
    try {
      body();
    } catch (const Error& error) {
      if (error.fault != Fault::comm || !trainer_) throw;
      throw Error(Fault::comm, cat(error.what(), "; last finished step: ", trainer_->steps_done()));
    }
  }

  /// Whether validations have kept the vectors.
  bool lead_part(const Config& part, MetricsFile& metrics, TrainSummary& summary,
                 const std::function<void(Rows<const float>)>& keep) {
    MemoryLedger ledger(device_);  // of validations
    std::optional<Validator> validator;
    if (validation_)
      validator.emplace(*validation_, config_, Exec{device_, threads_, nullptr, &ledger}, metrics, summary, keep);
    run_steps(*trainer_, part, metrics, true, summary, [&] {
      if (!is_validating()) return validator->note();
      const Rows<const float> table = gather_table();
      bool goes_on = true;
      wait_for_work(comm_, 0, [&] { goes_on = validator->goes_on(*trainer_, table); });
      agree_to_go_on(goes_on);
      return validator->note();
    });
    log_stages(*trainer_);
    return validator && validator->has_kept();
  }

  bool is_validating() const {
    return !config_.eval.valid.empty() && trainer_->at_validation() && !trainer_->stopped();
  }

  /// Rank 0's answer.
  void agree_to_go_on(bool goes_on) {
    comm_.broadcast(&goes_on, sizeof goes_on, 0);
    if (!goes_on) trainer_->end();
  }

  /// The whole table [dense rows + nodes, dim] in rank 0's memory; nothing elsewhere.
  Rows<const float> gather_table() {
    const int dim = trainer_->config().model.dim;
    const Offset rows = trainer_->dense_rows() + graph_.csr().num_nodes();
    if (comm_.rank() == 0) table_.resize(std::size_t(rows * dim));
    for (Offset first = 0; first < rows; first += kSaveBlock)
      trainer_->gather(first, {comm_.rank() == 0 ? table_.data() + first * dim : nullptr,
                               std::min(kSaveBlock, rows - first), dim, dim});
    return {table_.data(), rows, dim, dim};
  }

  const Graph& graph_;
  const Config& config_;
  std::vector<Config> parts_;
  Comm& comm_;
  Device device_;
  int threads_;
  WarmStart start_;
  std::optional<Validation> validation_;  // of rank 0
  std::vector<float> table_;              // of rank 0
  std::unique_ptr<RankTrainer> trainer_;
};

}  // namespace

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
    RankSession session(graph, config, comm, device, threads);
    comm.barrier();  // a rank that cannot begin ends the others before anything is written
    wait_for_work(comm, 0, [&] { log_ranks(session.trainer(), graph.csr(), world, comm); });
    if (leads) {
      summary = session.lead(run);
    } else {
      session.serve();
    }
  });
  return summary;
}

}  // namespace gs
