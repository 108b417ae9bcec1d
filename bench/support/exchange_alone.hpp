// Exchange without training: a rank's fetches and pushes, and the transport's part of them.
#pragma once

#include <algorithm>

#include "graphscale/train.hpp"

namespace gs::bench {

/// One rank that samples, fetches and pushes as RankTrainer does with staleness 0, and trains nothing between: what is
/// timed is exchange alone. Gradients are 0, which no codec but top-k and one-bit could tell.
class Exchanger {
 public:
  Exchanger(const Csr& graph, const Config& config, Comm& comm)
      : config_(config),
        comm_(comm),
        exec_{{}, std::max(1, hardware_threads() / comm.size()), nullptr, &ledger_},
        placement_(Placement::make(config, graph, comm)),
        topology_(graph, walk_rule(config), exec_),
        negatives_(graph, config, 0, placement_.sequence_of(comm.rank()), placement_.rows_of(comm.rank()), exec_),
        shape_(tile_shape(config)),
        tables_(tables_shape(config, graph.num_nodes(),
                             most_walks_of_a_rank(config.training.step_walks, comm.size(), false)),
                placement_, config.training.seed, comm, comm, host_ledger_, exec_),
        step_(tables_.make_step()) {}

  /// Seconds of fetch and push of step `step`; sampling is not timed.
  double step(Offset step) {
    const Offset walks = config_.training.step_walks;
    const WalkShare share = share_of_walks(step * walks, walks, comm_.rank(), comm_.size(), false);
    const kernels::WalkBatch batch{config_.training.seed, 0, share.first, share.count, shape_.walk_length};
    Batch& tiles = step_->batch;
    tiles.start(batch);
    const kernels::Ops& ops = kernels::ops(exec_);
    ops.make_walks(topology_.view(), batch, tiles.nodes(), exec_);
    ops.draw_negatives(negatives_.view(), batch, shape_.tiles_per_walk, shape_.shared_negatives, tiles.negatives(),
                       exec_);
    tiles.deduplicate(tables_.owners(), RowId(tables_.head_rows()), {}, exec_);
    comm_.barrier();
    const double start_s = now_s();
    tables_.fetch(*step_, {});
    tables_.push(*step_, update_rule(config_.training, 0, step));
    comm_.barrier();
    return now_s() - start_s;
  }

  const StoreCounters& counters() const { return tables_.counters(); }

 private:
  Config config_;
  Comm& comm_;
  MemoryLedger ledger_{Device{}}, host_ledger_{Device{}, true};
  Exec exec_;
  Placement placement_;
  WalkTopology topology_;
  NegativeTable negatives_;
  kernels::TileShape shape_;
  ShardedTables tables_;
  std::unique_ptr<StepRows> step_;
};

/// Seconds in which the transport alone moves what a step moves: so many bytes by all-to-alls, even parts, or one dense
/// all-reduce.
class Replay {
 public:
  explicit Replay(Comm& comm) : comm_(comm) {}

  /// bytes: of each all-to-all, all ranks' together.
  double all_to_all(const std::vector<Offset>& bytes) {
    const Offset ranks = comm_.size(), most = *std::max_element(bytes.begin(), bytes.end());
    send_.resize(std::size_t(most / ranks + ranks)), receive_.resize(send_.size());
    return timed([&] {
      for (const Offset all : bytes) {
        std::vector<Offset> parts(std::size_t(ranks), all / (ranks * (ranks - 1)));
        parts[std::size_t(comm_.rank())] = 0;
        comm_.all_to_all(send_.data(), parts, receive_.data(), parts);
      }
    });
  }

  double all_reduce(Offset floats) {
    values_.resize(std::size_t(floats));
    return timed([&] { comm_.all_reduce(Span<float>(values_)); });
  }

 private:
  template <class Body>
  double timed(const Body& body) {
    comm_.barrier();
    const double start_s = now_s();
    body();
    comm_.barrier();
    return now_s() - start_s;
  }

  Comm& comm_;
  std::vector<char> send_, receive_;
  std::vector<float> values_;
};

}  // namespace gs::bench
