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

/// Rank 0 finds the checkpoint and reads all of it; the others open the same.
std::unique_ptr<Checkpoint> find_resumed_by_all(const fs::path& run, const Graph& graph, const Config& config,
                                                Comm& comm) {
  std::unique_ptr<Checkpoint> found;
  wait_for_work(comm, 0, [&] { found = find_resumed(run, graph, config); });
  const std::string folder = comm.gather_texts(found ? found->folder().string() : "")[0];
  if (!found && !folder.empty()) found = std::make_unique<Checkpoint>(folder);
  return found;
}

/// The ranks' trainings, one after another. Rank 0 leads, the others serve: they make the same calls of comm.
class RankSession {
 public:
  /// resumed: where the run goes on, or null.
  RankSession(const Graph& graph, const Config& config, const fs::path& run, Comm& comm, const World& world,
              Device device, int threads, std::shared_ptr<const Checkpoint> resumed)
      : graph_(graph),
        config_(config),
        run_(run),
        parts_(parts_of(config)),
        comm_(comm),
        ranks_here_(world.local_size),
        device_(device),
        threads_(threads),
        goes_on_(resumed != nullptr),
        from_(resumed ? resumed->state() : RunState()),
        finished_(resumed),
        start_(graph, config, std::move(resumed)) {
    wait_for_work(comm, 0, [&] {
      start_.log();
      if (!config.eval.valid.empty()) validation_.emplace(graph, config);
    });
    start(std::size_t(from_.part));
    start_.drop_resumed();
    if (comm.rank() > 0) finished_.reset();
  }

  const RankTrainer& trainer() const { return *trainer_; }

  /// All ranks step; the vectors come to rank 0, which writes them.
  void serve() {
    naming_last_step([&] {
      Checkpoints checkpoints(graph_, config_, run_, &comm_, ranks_here_, nullptr, from_);
      Offset steps_before = from_.totals.steps - from_.steps;  // of earlier parts
      const auto save = [&](bool beside) {
        RunState state;
        state.totals.steps = steps_before + trainer_->steps_done();
        checkpoints.save(*trainer_, state, {}, beside);
      };
      for (std::size_t p = std::size_t(from_.part); p < parts_.size(); ++p) {
        if (int(p) > from_.part) start(p);
        if (resumes(int(p))) agree({});
        while (!trainer_->done()) {
          trainer_->step();
          Verdict verdict;
          if (is_validating()) {
            gather_table();
            wait_for_work(comm_, 0, {});
            verdict = agree({});
          }
          if (!trainer_->done() && checkpoints.is_due(*trainer_, verdict.is_best)) save(true);
        }
        const bool has_kept = agree({}).has_kept;
        if (!has_kept && parts_.size() > 1) gather_table();
        save(false);
        steps_before += trainer_->steps_done();
        if (!has_kept && parts_.size() == 1)
          serve_gathered(*trainer_, graph_.csr().num_nodes(), config_.model.dim, comm_);
        if (trainer_->stopped()) break;
      }
      if (parts_.size() > 1) wait_for_work(comm_, 0, {});
      comm_.barrier();  // which rank 0 does not come to where it could not write
    });
  }

  TrainSummary lead() {
    return with_record(config_, run_, goes_on_ ? &from_ : nullptr, [&](MetricsFile& metrics, TrainSummary& summary) {
      naming_last_step([&] {
        Outcome outcome(graph_, config_, run_, parts_.size());
        if (finished_) outcome.restore(finished_->finished());
        finished_.reset();
        Checkpoints checkpoints(graph_, config_, run_, &comm_, ranks_here_, &metrics, from_);
        for (std::size_t p = std::size_t(from_.part); p < parts_.size() && !summary.stopped; ++p) {
          if (int(p) > from_.part) start(p);
          lead_part(int(p), metrics, summary, outcome, checkpoints);
        }
        if (parts_.size() > 1) wait_for_work(comm_, 0, [&] { outcome.finish(); });
        comm_.barrier();
        if (!summary.stopped) checkpoints.mark_complete();
        summary.checkpoint_error = checkpoints.error();
        metrics.write_end(summary, trainer_.get());
      });
    });
  }

 private:
  void start(std::size_t part) {
    trainer_.reset();
    trainer_ = std::make_unique<RankTrainer>(graph_.csr(), parts_[part], comm_, device_, threads_,
                                             start_.rows(part, parts_[part].model.dim));
    if (resumes(int(part))) trainer_->resume(from_);
  }
  bool resumes(int part) const { return goes_on_ && part == from_.part; }

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

  void lead_part(int part, MetricsFile& metrics, TrainSummary& summary, Outcome& outcome, Checkpoints& checkpoints) {
    MemoryLedger ledger(device_);  // of validations
    std::optional<Validator> validator;
    const auto keep = [&](Rows<const float> table) { outcome.keep(std::size_t(part), table); };
    if (validation_)
      validator.emplace(*validation_, config_, Exec{device_, threads_, nullptr, &ledger}, metrics, summary, keep);
    if (resumes(part)) agree({!validator || !outcome.is_kept() || validator->restore(from_)});
    const auto save = [&](bool beside) {
      checkpoints.save(*trainer_, state_of(part, summary, validator, *trainer_), outcome.finished(), beside);
    };
    const auto validate = [&] {
      if (!is_validating()) return validator->note();
      const Rows<const float> table = gather_table();
      Verdict verdict;
      wait_for_work(comm_, 0, [&] { verdict.goes_on = validator->goes_on(*trainer_, table); });
      verdict.is_best = validator->is_best_at(*trainer_);
      agree(verdict);
      return validator->note();
    };
    run_steps(*trainer_, parts_[std::size_t(part)], metrics, true, summary,
              {validate, [&] {
                 checkpoints.look(*trainer_);
                 if (checkpoints.is_due(*trainer_, validator && validator->is_best_at(*trainer_))) save(true);
               }});
    log_stages(*trainer_);
    const bool has_kept = agree({true, false, validator && validator->has_kept()}).has_kept;
    if (!has_kept && parts_.size() > 1) keep(gather_table());
    save(false);
    if (!has_kept && parts_.size() == 1) save_gathered(*trainer_, graph_, config_.model.dim, run_, comm_);
  }

  bool is_validating() const {
    return !config_.eval.valid.empty() && trainer_->at_validation() && !trainer_->stopped();
  }

  /// What rank 0 says of its validations.
  struct Verdict {
    bool goes_on = true, is_best = false, has_kept = false;
  };
  Verdict agree(Verdict verdict) {
    comm_.broadcast(&verdict, sizeof verdict, 0);
    if (!verdict.goes_on) trainer_->end();
    return verdict;
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
  const fs::path& run_;
  std::vector<Config> parts_;
  Comm& comm_;
  int ranks_here_;
  Device device_;
  int threads_;
  bool goes_on_;
  RunState from_;
  std::shared_ptr<const Checkpoint> finished_;  // of rank 0, until its finished columns are taken
  WarmStart start_;
  std::optional<Validation> validation_;  // of rank 0
  std::vector<float> table_;              // of rank 0
  std::unique_ptr<RankTrainer> trainer_;
};

}  // namespace

TrainSummary train_ranks(const Graph& graph, const std::string& graph_path, const Config& given, const World& world,
                         const fs::path& run, Existing existing) {
  TrainSummary summary;
  run_ranks(world, given, [&](Comm& comm) {
    handshake(comm, facts_of(graph, given));
    const bool leads = comm.rank() == 0;
    if (leads) check_place(graph, given, run, existing);
    std::shared_ptr<const Checkpoint> resumed =
        existing == Existing::resume ? find_resumed_by_all(run, graph, given, comm) : nullptr;
    const Config config = resumed ? resumed_config(resumed->state(), given) : given;
    if (resumed && is_complete(resumed->state(), config)) {
      if (leads) summary = left_as_it_is(run, resumed->state());
      return;
    }
    const int all_threads = config.run.threads > 0 ? config.run.threads * world.local_size : hardware_threads();
    const int threads = std::max(1, all_threads / world.local_size);
    const Device device = device_of_rank(config, world, comm.rank());
    wait_for_work(comm, 0, [&] { log_graph(graph, graph_path, config); });
    if (leads) log_device(config, device, threads);
    RankSession session(graph, config, run, comm, world, device, threads, std::move(resumed));
    comm.barrier();  // a rank that cannot begin ends the others before anything is written
    wait_for_work(comm, 0, [&] { log_ranks(session.trainer(), graph.csr(), world, comm); });
    if (leads) {
      summary = session.lead();
    } else {
      session.serve();
    }
  });
  return summary;
}

}  // namespace gs
