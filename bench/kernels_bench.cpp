// Every kernel's rate, and its share of what this machine can do at most. One JSON line a case on stdout, a table on
// stderr.
//
//   kernels_bench [--device cpu|cuda] [--threads N] [--rows N,N] [--edges M,M] [--dim 128] [--walk-length 40]
//                 [--window 10] [--shared-negatives 32] [--negatives 5] [--seconds 2]
//
// Graphs: R-MAT of each number of nodes and drawn edges; by default as large as BlogCatalog, and 1 M nodes, 16 M edges.
// Every repetition takes the next walks of the epoch, in batches as large as training takes them.
//
// Limits and training kernels take turns, so that a processor that is slower for a while is so for all of them:
//   fma    multiply-adds in registers on all threads
//   rows   all rows of both tables of the model read and written once, in a shuffled order: what caches or memory give
//          to training's access. Training may move more: rows that a tile shares with the last one are still near.
// What bytes and FLOP are counted as, case by case, stands in `Case` below and in the output.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "graphscale/batch.hpp"
#include "graphscale/plan.hpp"

#include "bench/support/skip_gram_work.hpp"
#include "tests/support/second_order.hpp"

namespace {

using namespace gs;
using bench::measure;
using bench::Rate;
using bench::Repetition;
using bench::Work;

struct Options {
  std::string device = "cpu";
  int threads = hardware_threads();
  std::vector<Offset> rows = {10'312, 1'000'000};
  std::vector<Offset> edges = {333'983, 16'000'000};
  Config config;
  double seconds = 2;
};

Options read_options(int argc, char** argv) {
  Options options;
  ModelConfig& model = options.config.model;
  SamplerConfig& sampler = options.config.sampler;
  sampler.walks_per_node = 80;  // DeepWalk's; decides how many walks a batch has
  CLI::App app("Rates of the kernels, beside the limits of the machine");
  app.add_option("--device", options.device, "cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--threads", options.threads, "CPU threads")->capture_default_str();
  const auto* rows = app.add_option("--rows", options.rows, "nodes of each graph")->delimiter(',');
  const auto* edges =
      app.add_option("--edges", options.edges, "edges drawn for each graph [16 a node]")->delimiter(',');
  app.add_option("--dim", model.dim, "columns")->capture_default_str();
  app.add_option("--window", model.window, "contexts on either side")->capture_default_str();
  app.add_option("--negatives", model.negatives, "negatives a pair")->capture_default_str();
  app.add_option("--walk-length", sampler.walk_length, "nodes in a walk")->capture_default_str();
  app.add_option("--shared-negatives", sampler.shared_negatives, "negatives a tile")->capture_default_str();
  app.add_option("--seconds", options.seconds, "of each case")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  if (rows->count() > 0 && edges->count() == 0) {
    options.edges.clear();
    for (const Offset nodes : options.rows) options.edges.push_back(16 * nodes);
  }
  if (options.rows.size() != options.edges.size()) throw Error(Fault::usage, "--rows and --edges differ in length");
  check_config(options.config);
  if (model.negatives < 1 || model.negatives != std::floor(model.negatives))
    throw Error(Fault::usage, cat("--negatives ", model.negatives, ": a pair at a time has a whole number, 1 or more"));
  return options;
}

/// A graph, its tables and buffers on one device.
struct Fixture {
  Fixture(const Options& options, Device device, Offset rows, Offset edges)
      : config(options.config),
        shape(tile_shape(config)),
        ledger(device),
        stream(device),
        exec{device, options.threads, stream.get(), &ledger} {
    GeneratorOptions generator;
    generator.nodes = rows, generator.edges = edges, generator.threads = options.threads;
    graph = generate(generator);
    graph.weights.resize(graph.targets.size());
    for (std::size_t arc = 0; arc < graph.weights.size(); ++arc) graph.weights[arc] = float(1 + arc % 7);
    step_walks = plan_training(config, {rows, graph.csr().num_arcs(), true}, device).step_walks;
    const Offset tiles = step_walks * shape.tiles_per_walk;
    negative_table = std::make_unique<NegativeTable>(graph.csr(), config, 0, exec);
    model = std::make_unique<Model>(ModelShape::skip_gram(rows, shape.dim), 1, exec);
    nodes = {ledger, step_walks * shape.walk_length, "walks"};
    negatives = {ledger, tiles * shape.shared_negatives, "negatives"};
    results = {ledger, tiles, "results"};
  }

  const kernels::Ops& ops() const { return kernels::ops(exec); }

  void next_walks() {
    const Offset walks = graph.csr().num_nodes() * config.sampler.walks_per_node;
    batch.seed = 1, batch.length = shape.walk_length, batch.count = step_walks;
    batch.first = batch.first + 2 * step_walks <= walks ? batch.first + step_walks : 0;
  }
  void make_walks(const WalkTopology& topology) { ops().make_walks(topology.view(), batch, nodes.span(), exec); }
  void draw_negatives() {
    ops().draw_negatives(negative_table->view(), batch, shape.tiles_per_walk, shape.shared_negatives, negatives.span(),
                         exec);
  }
  kernels::TileBatch tiles() const {
    return {shape,
            batch,
            nodes.span(),
            negatives.span(),
            model->centres(),
            model->contexts(),
            kLearningRate,
            float(config.training.curvature_limit),
            results.span()};
  }

  std::vector<RowId> host_nodes() const { return to_host(nodes); }
  Offset pairs_of_results() const {
    Offset pairs = 0;
    for (const kernels::TileResult& result : to_host(results)) pairs += result.pairs;
    return pairs;
  }

  static constexpr float kLearningRate = 0.025f;
  Config config;
  kernels::TileShape shape;
  MemoryLedger ledger;
  Stream stream;
  Exec exec;
  BuiltGraph graph;
  Offset step_walks = 0;
  kernels::WalkBatch batch;
  std::unique_ptr<NegativeTable> negative_table;
  std::unique_ptr<Model> model;
  Buffer<RowId> nodes, negatives;
  Buffer<kernels::TileResult> results;

 private:
  template <class T>
  std::vector<T> to_host(const Buffer<T>& buffer) const {
    std::vector<T> values(std::size_t(buffer.size()));
    copy_bytes(values.data(), buffer.data(), buffer.size() * Offset(sizeof(T)), exec);
    wait(exec);
    return values;
  }
};

struct Case {
  const char *name, *unit, *formula;  // formula: bytes read and written, FLOP
};
constexpr Case kFma{"limit: fma", "value", "2 FLOP a multiply-add in registers"};
constexpr Case kRowsInOrder{"limit: rows in order", "row", "8 dim bytes a row of both tables"};
constexpr Case kRows{"limit: rows", "row", "8 dim bytes a row of both tables, in a shuffled order"};
constexpr Case kUniform{"walks, uniform", "step", "20 bytes a step: node word 8, target 4, row read 4 and written 4"};
constexpr Case kWeighted{"walks, weighted", "step", "28 bytes a step: as uniform, and an alias slot 8"};
constexpr Case kBiased{"walks, p 1/4 q 4", "step",
                       "20 bytes a step, as uniform; tries and tests of neighbours are not counted"};
constexpr Case kWeightedBiased{"walks, weighted p q", "step", "28 bytes a step, as weighted; p 1/4, q 4"};
constexpr Case kStar{"star, uniform", "step", "20 bytes a step"};
constexpr WalkRule kBiases{true, 4, 0.25f};
constexpr const char* kStarFormula = "20 bytes a step, as uniform";
constexpr std::pair<WalkRule, Case> kStarBiased[] = {{kBiases, {"star, p 1/4 q 4", "step", kStarFormula}},
                                                     {{true, 0.25f, 4}, {"star, p 4 q 1/4", "step", kStarFormula}},
                                                     {{true, 1, 1e-6f}, {"star, p 1 q 1e6", "step", kStarFormula}}};
constexpr Case kNegatives{"negatives", "draw", "12 bytes a draw: alias slot 8, row written 4"};
constexpr Case kUnique{"unique_rows", "position", "16 bytes a position: row 4, table entry 8, slot written 4"};
constexpr Case kInitialize{"initialize_rows", "row", "4 dim bytes a row"};
constexpr Case kGather{"gather_rows", "row", "8 dim bytes a row of the table, in a shuffled order"};
constexpr Case kPack{"pack_rows fp16", "row", "6 dim bytes a row of the table, in a shuffled order"};
constexpr const char* kGradientFormula = "encoded and added: 12 dim bytes a gradient, and its code's twice";
constexpr std::pair<kernels::Compression, Case> kGradients[] = {
    {kernels::Compression::none, {"gradients none", "row", kGradientFormula}},
    {kernels::Compression::fp16, {"gradients fp16", "row", kGradientFormula}},
    {kernels::Compression::int8, {"gradients int8", "row", kGradientFormula}},
    {kernels::Compression::topk, {"gradients topk 1/8", "row", kGradientFormula}},
    {kernels::Compression::onebit, {"gradients onebit", "row", kGradientFormula}}};
constexpr const char* kUpdateFormula =
    "12 dim bytes a row of the table, in a shuffled order, and 8 a column of its state";
constexpr std::pair<kernels::Optimizer, Case> kUpdates[] = {
    {kernels::Optimizer::sgd, {"update_rows sgd", "row", kUpdateFormula}},
    {kernels::Optimizer::momentum, {"update_rows momentum", "row", kUpdateFormula}},
    {kernels::Optimizer::adagrad, {"update_rows adagrad", "row", kUpdateFormula}},
    {kernels::Optimizer::adam, {"update_rows adam", "row", kUpdateFormula}}};
constexpr Case kTiles{
    "train_tiles", "pair",
    "a tile of c centres, x contexts, s negatives: 8 dim (c + x + s) bytes, 6 dim (pairs + c s) FLOP"};
constexpr Case kPairs{"train_pairs", "pair", "a pair of k negatives: 8 dim (k + 2) bytes, 6 dim (k + 1) FLOP"};

/// Prints every case as it is known, beside the limits.
class Report {
 public:
  Report(const Options& options, Device device) : options_(options), device_(device) {
    std::fprintf(stderr, "%s (%s), %d threads\n", to_string(device).c_str(), describe(device).c_str(), options.threads);
    std::fprintf(stderr, "%-22s %9s %11s %8s %6s %5s %9s %9s %8s %8s %7s\n", "case", "rows", "rate", "unit", "spread",
                 "load", "B/unit", "FLOP/unit", "GB/s", "GFLOP/s", "limit");
  }

  void start_size(const Csr& graph) { rows_ = graph.num_nodes(), arcs_ = graph.num_arcs(); }
  void set_limits(double fma_flop_per_s, double rows_bytes_per_s) {
    fma_limit_ = fma_flop_per_s, rows_limit_ = rows_bytes_per_s;
  }

  void add(const Case& of, const Rate& rate) {
    const double memory_share = rate.bytes_per_s() / rows_limit_;
    const double fma_share = rate.flop_per_s() / fma_limit_;
    nlohmann::ordered_json line{{"bench", "kernels"}, {"case", of.name}};
    add_axes(line);
    line.update({{"unit", of.unit},
                 {"formula", of.formula},
                 {"units_per_s", rate.units_per_s},
                 {"slowest_per_s", rate.slowest},
                 {"fastest_per_s", rate.fastest},
                 {"units_per_cpu_s", rate.units_per_cpu_s()},
                 {"repeats", rate.repeats},
                 {"seconds", rate.seconds},
                 {"cpu_seconds", rate.cpu_seconds},
                 {"load", rate.load(options_.threads)},
                 {"bytes_per_unit", rate.bytes_per_unit()},
                 {"flop_per_unit", rate.flop_per_unit()},
                 {"bytes_per_s", rate.bytes_per_s()},
                 {"flop_per_s", rate.flop_per_s()},
                 {"share_of_rows_limit", memory_share},
                 {"share_of_fma_limit", fma_share}});
    std::cout << line.dump() << std::endl;
    std::fprintf(stderr, "%-22s %9lld %11s %8s %5.0f%% %5.2f %9.0f %9.0f %8.1f %8.1f", of.name, (long long)rows_,
                 human_count(rate.units_per_s).c_str(), cat(of.unit, "/s").c_str(), 100 * rate.spread(),
                 rate.load(options_.threads), rate.bytes_per_unit(), rate.flop_per_unit(), rate.bytes_per_s() / 1e9,
                 rate.flop_per_s() / 1e9);
    std::fprintf(stderr, "  %3.0f%% rows %3.0f%% fma\n", 100 * memory_share, 100 * fma_share);
  }

  /// How many times the first rate is the second, by the clock and by processor time.
  void add_ratio(const std::string& name, const Rate& first, const Rate& second) {
    const double by_clock = first.units_per_s / second.units_per_s;
    const double by_cpu = first.units_per_cpu_s() / second.units_per_cpu_s();
    nlohmann::ordered_json line{{"bench", "kernels"}, {"case", name}};
    add_axes(line);
    line.update({{"ratio", by_clock}, {"ratio_by_cpu", by_cpu}});
    std::cout << line.dump() << std::endl;
    std::fprintf(stderr, "%-22s %9lld %10.2fx (%.2fx by processor time)\n", name.c_str(), (long long)rows_, by_clock,
                 by_cpu);
  }

 private:
  void add_axes(nlohmann::ordered_json& line) const {
    line.update({{"device", to_string(device_)},
                 {"threads", options_.threads},
                 {"rows", rows_},
                 {"arcs", arcs_},
                 {"dim", options_.config.model.dim},
                 {"walk_length", options_.config.sampler.walk_length},
                 {"window", options_.config.model.window},
                 {"shared_negatives", options_.config.sampler.shared_negatives},
                 {"negatives", options_.config.model.negatives}});
  }

  const Options& options_;
  Device device_;
  Offset rows_ = 0, arcs_ = 0;
  double fma_limit_ = 1, rows_limit_ = 1;  // FLOP/s, bytes/s
};

// ------------------------------------------------------------------------------------------- what takes turns: limits

/// Multiply-adds kept in registers.
class FmaLimit {
 public:
  explicit FmaLimit(const Exec& exec)
      : exec_(exec), rounds_(exec.device.is_cuda() ? 1 << 14 : 1 << 10), values_(*exec.ledger, kValues, "chains") {}
  Repetition repetition() const {
    const double flop = 2.0 * kernels::kMultiplyAddChains * rounds_ * double(kValues);
    return {.run = [this] { kernels::ops(exec_).multiply_adds(values_.span(), rounds_, exec_); },
            .work =
                [flop] {
                  return Work{double(kValues), 0, flop};
                }};
  }

 private:
  static constexpr Offset kValues = 1 << 20;
  const Exec& exec_;
  int rounds_;
  Buffer<float> values_;
};

/// Both tables of a model, whole, in order or shuffled. Training's scores do not mind that both change their signs.
class RowsLimit {
 public:
  RowsLimit(const Fixture& fixture, bool shuffle) : fixture_(fixture) {
    const auto count = std::uint64_t(fixture.graph.csr().num_nodes());
    std::vector<RowId> order(count);
    for (std::uint64_t i = 0; i < count; ++i) order[i] = RowId(shuffle ? shuffled(i, count, 1) : i);
    order_ = {*fixture.exec.ledger, Offset(count), "order of rows"};
    copy_bytes(order_.data(), order.data(), order_.size() * Offset(sizeof(RowId)), fixture.exec);
    wait(fixture.exec);
    passes_ = 1 + int(kLeastRows / count);
  }
  Repetition repetition() const {
    const double rows = 2.0 * passes_ * double(order_.size()), bytes = 8.0 * fixture_.shape.dim * rows;
    return {.run = [this] { run(); }, .work = [rows, bytes] { return Work{rows, bytes, 0}; }};
  }

 private:
  static constexpr std::uint64_t kLeastRows = 1 << 19;  // so that starting the threads does not count

  void run() const {
    for (int pass = 0; pass < passes_; ++pass) {
      fixture_.ops().negate_rows(fixture_.model->centres(), order_.span(), fixture_.exec);
      fixture_.ops().negate_rows(fixture_.model->contexts(), order_.span(), fixture_.exec);
    }
  }

  const Fixture& fixture_;
  Buffer<RowId> order_;
  int passes_;
};

// --------------------------------------------------------------------------------------------------------- the cases

Repetition walks_of(Fixture& f, const WalkTopology& topology, double bytes_a_step) {
  const auto work = [&f, bytes_a_step] {
    const auto steps = double(bench::count_walks(f.host_nodes(), f.shape).steps);
    return Work{steps, bytes_a_step * steps, 0};
  };
  return {.prepare = [&f] { f.next_walks(); }, .run = [&f, &topology] { f.make_walks(topology); }, .work = work};
}

/// The sampler and the start of a model: what training does beside its tiles.
void measure_sampling(const Options& options, Fixture& f, Report& report) {
  for (const bool weighted : {false, true}) {
    const WalkTopology topology(f.graph.csr(), {weighted}, f.exec);
    const Repetition walks = walks_of(f, topology, weighted ? 28 : 20);
    report.add(weighted ? kWeighted : kUniform, measure(walks, options.seconds, f.exec));
    const WalkTopology biased(f.graph.csr(), {weighted, kBiases.return_bias, kBiases.out_bias}, f.exec);
    report.add(weighted ? kWeightedBiased : kBiased,
               measure(walks_of(f, biased, weighted ? 28 : 20), options.seconds, f.exec));
  }
  const auto draws = double(f.negatives.size()), rows = double(f.model->centres().count);
  report.add(kNegatives, measure({.prepare = [&] { f.next_walks(); },
                                  .run = [&] { f.draw_negatives(); },
                                  .work =
                                      [&] {
                                        return Work{draws, 12 * draws, 0};
                                      }},
                                 options.seconds, f.exec));
  const float scale = 0.5f / float(f.shape.dim);
  report.add(kInitialize, measure({.run = [&] { f.ops().initialize_rows(f.model->centres(), {}, scale, 1, f.exec); },
                                   .work =
                                       [&] {
                                         return Work{rows, 4.0 * f.shape.dim * rows, 0};
                                       }},
                                  options.seconds, f.exec));
}

/// A star of a million leaves and a million random edges: the hardest graph for walks of second order.
void measure_star(const Options& options, Device device, Report& report) {
  constexpr RowId kLeaves = 1'000'000;
  constexpr Offset kWalks = 1 << 15;
  MemoryLedger ledger(device);
  const Stream stream(device);
  const Exec exec{device, options.threads, stream.get(), &ledger};
  const SmallGraph graph = star_with_edges(kLeaves, kLeaves);
  report.start_size(graph.csr());
  const int length = options.config.sampler.walk_length;
  const Buffer<RowId> nodes(ledger, kWalks * length, "walks");
  kernels::WalkBatch batch{1, 0, 0, kWalks, length};
  std::vector<WalkTopology> topologies;
  topologies.emplace_back(graph.csr(), WalkRule{}, exec);
  for (const auto& [rule, of] : kStarBiased) topologies.emplace_back(graph.csr(), rule, exec);
  const auto walks = [&](const WalkTopology& topology) {
    const double steps = double(kWalks) * (length - 1);  // no walk ends early
    return Repetition{.prepare = [&] { batch.first = (batch.first + kWalks) % (16 * kWalks); },
                      .run = [&] { kernels::ops(exec).make_walks(topology.view(), batch, nodes.span(), exec); },
                      .work =
                          [steps] {
                            return Work{steps, 20 * steps, 0};
                          }};
  };
  std::vector<Repetition> repetitions;
  for (const WalkTopology& topology : topologies) repetitions.push_back(walks(topology));
  const std::vector<Rate> rates = bench::measure_in_turn(repetitions, options.seconds, exec);
  report.add(kStar, rates[0]);
  for (std::size_t k = 0; k < std::size(kStarBiased); ++k) {
    const Case& of = kStarBiased[k].second;
    report.add(of, rates[k + 1]);
    report.add_ratio(cat(kStar.name, " / ", of.name), rates[0], rates[k + 1]);
  }
}

/// A step's walks and negatives made unique, for rows of 8 owners.
void measure_unique(const Options& options, Fixture& f, Report& report) {
  const WalkTopology topology(f.graph.csr(), {false}, f.exec);
  Batch batch(f.shape, f.step_walks, f.model->centres().count, f.exec);
  const auto prepare = [&] {
    f.next_walks();
    batch.start(f.batch);
    f.ops().make_walks(topology.view(), f.batch, batch.nodes(), f.exec);
    f.ops().draw_negatives(f.negative_table->view(), f.batch, f.shape.tiles_per_walk, f.shape.shared_negatives,
                           batch.negatives(), f.exec);
  };
  const auto work = [&] { return Work{double(batch.requested()), 16 * double(batch.requested()), 0}; };
  const auto run = [&] { batch.deduplicate({8, {}, {}}, 0, {}, f.exec); };
  report.add(kUnique, measure({.prepare = prepare, .run = run, .work = work}, options.seconds, f.exec));
}

/// Limits, tiles and pairs in turn.
void measure_training(const Options& options, Fixture& f, Report& report) {
  const WalkTopology topology(f.graph.csr(), {false}, f.exec);
  const FmaLimit fma(f.exec);
  const RowsLimit in_order(f, false), anywhere(f, true);
  const auto prepare = [&] {
    f.next_walks();
    f.make_walks(topology);
    f.draw_negatives();
  };
  const int dim = f.shape.dim;
  const Repetition tiles{
      .prepare = prepare,
      .run = [&] { f.ops().train_tiles(f.tiles(), f.exec); },
      .work = [&] { return bench::tile_work(f.pairs_of_results(), bench::count_walks(f.host_nodes(), f.shape), dim); }};
  const Repetition pairs{.prepare = prepare,
                         .run = [&] { f.ops().train_pairs(f.tiles(), f.negative_table->view().slots, f.exec); },
                         .work = [&] { return bench::pair_work(f.pairs_of_results(), f.config.model.negatives, dim); }};

  const std::vector<Rate> rates = bench::measure_in_turn(
      {fma.repetition(), in_order.repetition(), anywhere.repetition(), tiles, pairs}, options.seconds, f.exec);

  report.set_limits(rates[0].flop_per_s(), rates[2].bytes_per_s());
  report.add(kFma, rates[0]);
  report.add(kRowsInOrder, rates[1]);
  report.add(kRows, rates[2]);
  report.add(kTiles, rates[3]);
  report.add(kPairs, rates[4]);
  report.add_ratio("train_tiles / train_pairs", rates[3], rates[4]);
}

/// What an exchanged step does to a table beside its tiles, kLongest of its rows at a time.
class ExchangeCases {
 public:
  explicit ExchangeCases(Fixture& fixture)
      : f_(fixture),
        table_(fixture.model->centres()),
        count_(std::min(kLongest, table_.count)),
        gradients_(fixture.ledger, count_ * table_.stride, "gradients"),
        out_(fixture.ledger, count_ * table_.stride, "rows"),
        curvature_(fixture.ledger, count_, "curvature"),
        bytes_(fixture.ledger, count_ * (table_.dim + 3) * Offset(sizeof(float)), "wire"),
        order_(fixture.ledger, count_, "rows of the table"),
        slots_(fixture.ledger, count_, "slots"),
        totals_(fixture.ledger, 1, "totals") {
    fill(order_, table_.count), fill(slots_, count_);
    f_.ops().initialize_rows(rows(gradients_), {}, 0.01f, 1, f_.exec);
  }

  void measure_all(double seconds, Report& report) {
    const double dim = table_.dim;
    const auto add = [&](const Case& of, double bytes_a_row, const std::function<void()>& run) {
      const double rows = double(count_);
      const auto work = [rows, bytes_a_row] { return Work{rows, bytes_a_row * rows, 0}; };
      report.add(of, measure({.run = run, .work = work}, seconds, f_.exec));
    };
    add(kGather, 8 * dim, [&] { f_.ops().gather_rows(table_, order_.span(), rows(out_), f_.exec); });
    add(kPack, 6 * dim,
        [&] { f_.ops().pack_rows(table_, order_.span(), kernels::RowType::fp16, bytes_.data(), f_.exec); });
    for (const auto& [kind, of] : kGradients) {
      const kernels::GradientCodec codec{kind, table_.dim, std::max(1, table_.dim / 8)};
      add(of, 12 * dim + 2 * codec.row_bytes(), [&] { send(codec); });
    }
    for (const auto& [optimizer, of] : kUpdates) {
      const int columns = kernels::state_columns(optimizer, table_.dim);
      const Buffer<float> state(f_.ledger, table_.count * padded_stride(columns), "state");
      add(of, 12 * dim + 8 * columns, [&] { update(optimizer, columns, state); });
    }
  }

 private:
  static constexpr Offset kLongest = 1 << 17;  // rows: 64 MiB of 128 columns, more than a core's own caches

  Rows<float> rows(const Buffer<float>& values) const { return {values.data(), count_, table_.dim, table_.stride}; }
  void fill(const Buffer<RowId>& rows, Offset of) const {
    std::vector<RowId> values(std::size_t(rows.size()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = RowId(shuffled(i, std::uint64_t(of), 1));
    copy_bytes(rows.data(), values.data(), rows.size() * Offset(sizeof(RowId)), f_.exec);
    wait(f_.exec);
  }
  void send(const kernels::GradientCodec& codec) const {
    f_.ops().encode_gradients(codec, rows(gradients_), curvature_.span(), {}, bytes_.data(), f_.exec);
    f_.ops().add_coded(codec, bytes_.data(), slots_.span(), rows(out_), curvature_.span(), f_.exec);
  }
  void update(kernels::Optimizer optimizer, int columns, const Buffer<float>& state) const {
    kernels::UpdateRule rule;
    rule.optimizer = optimizer, rule.learning_rate = 0.001f, rule.max_row_step = 0.2f;
    f_.ops().update_rows(table_, Rows<float>(state.data(), table_.count, columns, padded_stride(columns)),
                         order_.span(), rows(gradients_), curvature_.span(), rule, totals_.span(), f_.exec);
  }

  Fixture& f_;
  Rows<float> table_;
  Offset count_;
  Buffer<float> gradients_, out_, curvature_;
  Buffer<char> bytes_;
  Buffer<RowId> order_, slots_;
  Buffer<kernels::UpdateTotals> totals_;
};

void run(const Options& options) {
  const Device device = choose_device(options.device);
  Report report(options, device);
  for (std::size_t size = 0; size < options.rows.size(); ++size) {
    Fixture fixture(options, device, options.rows[size], options.edges[size]);
    report.start_size(fixture.graph.csr());
    measure_training(options, fixture, report);
    measure_sampling(options, fixture, report);
    measure_unique(options, fixture, report);
    ExchangeCases(fixture).measure_all(options.seconds, report);
  }
  measure_star(options, device, report);
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
