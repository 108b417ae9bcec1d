#include <algorithm>
#include <cmath>

#include "graphscale/train.hpp"

namespace gs {
namespace {

/// A loss a pair above this many times that of untrained vectors has exploded: it never comes back.
constexpr double kExplosion = 20;

/// The rows themselves on the CPU, else their values in `copy`.
Rows<const float> on_host(Rows<float> rows, std::vector<float>& copy, const Exec& exec) {
  if (!exec.device.is_cuda()) return rows;
  copy.resize(std::size_t(rows.count * rows.stride));
  copy_bytes(copy.data(), rows.data, Offset(copy.size() * sizeof(float)), exec);
  wait(exec);
  return {copy.data(), rows.count, rows.dim, rows.stride};
}

std::unique_ptr<MemoryLedger> open_ledger(const Plan& plan) {
  check_fits(plan, available_bytes(plan.device));
  return std::make_unique<MemoryLedger>(plan.device);
}

}  // namespace

Training::Training(const Csr& graph, const Config& config, Device device)
    : config_(config), graph_arcs_(graph.num_arcs()) {
  if (config.training.deterministic && device.is_cuda())
    throw Error(Fault::usage, "training.deterministic needs device cpu: blocks of a GPU add in no fixed order");
  if (graph.num_arcs() == 0) throw Error(Fault::input, "the graph has no edges: there is nothing to walk");
  constexpr double kMostWalks = 0x1p62;  // counts of walks are 64-bit
  const double of_walks = double(graph.num_nodes()) * config.sampler.walks_per_node;
  const double walks = std::max(of_walks, double(graph.num_arcs())) * config.training.epochs;
  if (walks > kMostWalks)
    throw Error(Fault::usage, cat("training.epochs ", config.training.epochs, " and sampler.walks_per_node ",
                                  config.sampler.walks_per_node, " make ", walks, " walks; at most ", kMostWalks,
                                  " can be counted: lower one of them"));
  walks_per_epoch_ = units_per_epoch(config, graph.num_nodes(), graph.num_arcs());
  walks_total_ = walks_per_epoch_ * config.training.epochs;
}

Training::StepWalks Training::walks_of(Offset step) const {
  const Offset steps_per_epoch = steps_until(walks_per_epoch_);
  StepWalks walks;
  walks.epoch = int(step / steps_per_epoch);
  walks.first = step % steps_per_epoch * step_walks_;
  walks.count = std::min(step_walks_, walks_per_epoch_ - walks.first);
  walks.share = double(walks.epoch * walks_per_epoch_ + walks.first) / double(walks_total_);
  return walks;
}

Offset Training::steps_until(Offset walks) const {
  const auto steps_for = [&](Offset count) { return (count + step_walks_ - 1) / step_walks_; };
  return walks / walks_per_epoch_ * steps_for(walks_per_epoch_) + steps_for(walks % walks_per_epoch_);
}

Offset Training::next_validation(Offset steps) const {
  const Offset all = steps_until(walks_per_epoch_ * config_.training.epochs);
  if (config_.eval.valid.empty() || steps >= all) return all;
  const double walks = config_.eval.every * double(walks_per_epoch_);  // between two
  const StepWalks last = walks_of(steps);
  const double done = double(last.epoch) * double(walks_per_epoch_) + double(last.first);
  const double next = (std::floor(done / walks * (1 + 1e-12)) + 1) * walks;
  if (next >= double(walks_per_epoch_) * config_.training.epochs) return all;
  return std::max(steps + 1, steps_until(Offset(std::ceil(next * (1 - 1e-12)))));
}

Offset Training::next_pause(Offset steps) const {
  const Offset validation = next_validation(steps), every = config_.checkpoint.every_steps;
  if (every == 0 || config_.checkpoint.keep == 0) return validation;
  return std::min(validation, (steps / every + 1) * every);
}

bool Training::at_checkpoint() const {
  return config_.checkpoint.every_steps > 0 && steps_done_ % config_.checkpoint.every_steps == 0;
}

void Training::resume(const RunState& state) {
  GS_EXPECT(steps_done_ == 0 && steps_until(state.walks) == state.steps, "resume: ", state.walks, " walks in ",
            state.steps, " steps, but a step has ", step_walks_, " walks");
  steps_done_ = state.steps, walks_done_ = state.walks;
  if (state.steps > 0) epoch_ = walks_of(state.steps - 1).epoch;
}

bool Training::at_validation() const { return steps_done_ > 0 && next_validation(steps_done_ - 1) == steps_done_; }

void Training::check_loss(const Step& step, const std::function<std::string()>& first_bad_value) const {
  const double untrained = untrained_loss(config_);
  const double mean = step.loss_a_pair();
  if (std::isfinite(mean) && mean <= kExplosion * untrained) return;
  throw Error(Fault::internal,
              cat("training diverged at step ", steps_done_, " (epoch ", epoch_, ", learning rate ", step.learning_rate,
                  "): the mean loss a pair is ", std::isnan(mean) ? "not a number" : cat(mean),
                  ", that of untrained vectors ", untrained, first_bad_value(), "; lower training.learning_rate"));
}

Trainer::Trainer(const Csr& graph, const Config& config, Device device, int threads, const StartRows& start)
    : Training(graph, config, device),
      shape_(tile_shape(config)),
      triples_(triple_shape(config, graph.num_relations)),
      dense_rows_(dense_rows_of(config, graph.num_relations)),
      plan_(plan_training(config, size_of(graph), device)),
      ledger_(open_ledger(plan_)),
      host_ledger_(std::make_unique<MemoryLedger>(device, true)),
      stream_(device),
      exec_{device, threads, stream_.get(), ledger_.get()},
      writer_{device, config.training.deterministic ? 1 : threads, stream_.get(), ledger_.get()} {
  shape_.both_ways = !graph.directed;
  step_walks_ = plan_.step_walks;
  const Offset tiles = plan_.step_walks * shape_.tiles_per_walk;
  Exec graph_home = exec_;
  if (config.sampler.topology == "uva") graph_home.ledger = host_ledger_.get();
  sampler_ = std::make_unique<Sampler>(graph, config, dense_rows_, graph_home);
  negative_table_ = std::make_unique<NegativeTable>(graph, config, dense_rows_, exec_);
  if (keeps_known_triples(config)) known_ = std::make_unique<KnownTable>(graph, graph_home);
  model_ =
      std::make_unique<Model>(model_shape(config, graph.num_nodes(), graph.num_relations), config.training.seed, exec_);
  model_->start_from(start, exec_);
  nodes_ = {*ledger_, plan_.step_walks * shape_.walk_length, "step: walks"};
  negatives_ = {*ledger_, tiles * shape_.shared_negatives, "step: negatives"};
  results_ = {*ledger_, tiles, "step: results"};
  totals_ = {*ledger_, 1, "step: totals"};
  measures_.stages = {{"sample"}, {"step"}};
}

Trainer::Step Trainer::step() {
  paused_ = false;
  const kernels::Ops& ops = kernels::ops(exec_);
  const StepWalks now = walks_of(steps_done_);
  epoch_ = now.epoch;
  Step step;
  step.walks = now.count;
  step.learning_rate = learning_rate_at(config_.training, now.share);

  const Offset tiles = step.walks * shape_.tiles_per_walk;
  const kernels::WalkBatch walks{config_.training.seed, std::uint32_t(epoch_), now.first, step.walks,
                                 shape_.walk_length};
  const Span<RowId> nodes = nodes_.span().subspan(0, step.walks * shape_.walk_length);
  const Span<RowId> negatives = negatives_.span().subspan(0, tiles * shape_.shared_negatives);
  const Span<kernels::TileResult> results = results_.span().subspan(0, tiles);
  const double start_s = now_s();
  {
    const StageRange range("sample");
    sampler_->make(walks, nodes, exec_);
    ops.draw_negatives(negative_table_->view(nodes), walks, shape_.tiles_per_walk, shape_.shared_negatives, negatives,
                       exec_);
    if (looks_) wait(exec_);
  }
  const double sampled_s = now_s();
  kernels::TrainTotals totals;
  {
    const StageRange range("step");
    train(walks, nodes, negatives, step.learning_rate);
    ops.add_totals(results, totals_.span(), exec_);
    copy_bytes(&totals, totals_.data(), sizeof totals, exec_);
    wait(exec_);
  }
  const double spent_s = now_s() - start_s;
  // A GPU samples while the host goes on: it is waited for in the steps that are looked at alone.
  if (looks_ || !exec_.device.is_cuda()) sample_share_ = (sampled_s - start_s) / std::max(spent_s, 1e-9);
  measures_.stages[0].busy_s += sample_share_ * spent_s, measures_.stages[1].busy_s += (1 - sample_share_) * spent_s;
  if (std::exchange(looks_, false)) look_at(step.walks, nodes, negatives);
  step.pairs = Offset(totals.pairs - seen_.pairs);
  step.loss = totals.loss - seen_.loss;
  seen_ = totals;
  walks_done_ += step.walks;
  ++steps_done_;
  check_loss(step, [&] { return first_bad_value(); });
  return step;
}

void Trainer::look_at(Offset units, Span<const RowId> nodes, Span<const RowId> negatives) {
  looked_s_ = now_s();
  std::vector<RowId> copy;
  Span<const RowId> of_nodes = nodes, of_negatives = negatives;
  if (exec_.device.is_cuda()) {
    copy.resize(std::size_t(nodes.size + negatives.size));
    copy_bytes(copy.data(), nodes.data, nodes.size * Offset(sizeof(RowId)), exec_);
    copy_bytes(copy.data() + nodes.size, negatives.data, negatives.size * Offset(sizeof(RowId)), exec_);
    wait(exec_);
    of_nodes = {copy.data(), nodes.size}, of_negatives = {copy.data() + nodes.size, negatives.size};
  }
  met_.assign(std::size_t(kernels::bit_words(model_->centres().count)), 0);
  for (const Span<const RowId> rows : {of_nodes, of_negatives})
    for (const RowId row : rows) {
      if (row == kNoRow) continue;
      std::uint32_t& word = met_[row / 32];
      const std::uint32_t bit = std::uint32_t{1} << row % 32;
      measures_.distinct_rows += (word & bit) == 0;
      word |= bit;
    }
  measures_.nodes += nodes.size - std::count(of_nodes.begin(), of_nodes.end(), kNoRow);
  measures_.units += units, ++measures_.batches;
  look_s_ = now_s() - looked_s_;
}

Measures Trainer::take_measures() {
  constexpr double kLookShare = 0.005;
  looks_ = now_s() - looked_s_ > look_s_ / kLookShare;
  Measures measures = std::exchange(measures_, {});
  measures_.stages = {{"sample"}, {"step"}};
  measures.device_bytes = ledger_->held(), measures.host_bytes = host_ledger_->held();
  measures.device = exec_.device;
  return measures;
}

void Trainer::train(const kernels::WalkBatch& units, Span<const RowId> nodes, Span<const RowId> negatives,
                    double learning_rate) {
  const kernels::Ops& ops = kernels::ops(exec_);
  const Span<kernels::TileResult> results = results_.span().subspan(0, units.count * shape_.tiles_per_walk);
  if (shape_.kind != kernels::TileKind::triples) {
    ops.train_tiles({shape_, units, nodes, negatives, model_->centres(), model_->contexts(), float(learning_rate),
                     float(config_.training.curvature_limit), results},
                    writer_);
    return;
  }
  kernels::TripleBatch batch;
  batch.shape = triples_, batch.tiles = units, batch.nodes = nodes, batch.negatives = negatives;
  batch.rows = model_->centres(), batch.squares = model_->squares(), batch.results = results;
  batch.learning_rate = float(learning_rate), batch.epsilon = float(config_.training.epsilon);
  batch.first_entity = RowId(dense_rows_);
  if (known_) batch.known = known_->view();
  ops.train_triples(batch, writer_);
}

std::string Trainer::first_bad_value() const {
  for (const auto& [name, table] : {std::pair("centre", model_->centres()), {"context", model_->contexts()}}) {
    std::vector<float> copy;
    const Rows<const float> rows = on_host(table, copy, exec_);
    if (const auto [row, column] = first_not_finite(rows); row >= 0)
      return cat("; first bad value: ", rows(row, column), " in row ", row, ", column ", column, " of the ", name,
                 " table");
  }
  return "";
}

Rows<const float> Trainer::table(std::vector<float>& copy) const { return on_host(model_->centres(), copy, exec_); }

}  // namespace gs
