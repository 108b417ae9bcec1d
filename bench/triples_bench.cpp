// Rates of a knowledge graph's models: training by tiles beside training a triple at a time, and scores of all
// entities, each with its share of the multiply-adds that this machine can do. One JSON line a case on stdout, a table
// on stderr.
//
//   triples_bench [--device cpu|cuda] [--threads N] [--entities 14541] [--relations 237] [--dim 128,200]
//                 [--triples 32] [--shared-negatives 256] [--negatives 5] [--adagrad] [--seconds 2]
//
// The default size is FB15k-237's. Training and the limit take turns. Triples and negatives are drawn uniformly.
// FLOP of a pair (a query with an entity), forward and gradients: 6 dim where scores are dot products or transe_l2;
// transe_l1 8 dim; rotate 13 dim and a root and an inverse one for every two columns, which are not counted. Of a score
// alone: 2 dim, 3 dim for transe, 3 dim and a root for every two columns for rotate.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "kernels/ops.hpp"

#include "bench/support/measure.hpp"
#include "bench/support/single_triples.hpp"

namespace {

using namespace gs;
using bench::Rate;
using bench::Repetition;
using bench::Work;
using kernels::Score;

struct Model {
  const char* name;
  Score score;
  double train_flop, score_flop;  // a pair and column
};
constexpr Model kModels[] = {{"transe_l1", Score::transe_l1, 8, 3},
                             {"transe_l2", Score::transe_l2, 6, 3},
                             {"distmult", Score::distmult, 6, 2},
                             {"complex", Score::complex, 6, 2},
                             {"rotate", Score::rotate, 13, 3}};

struct Options {
  std::string device = "cpu";
  int threads = hardware_threads();
  Offset entities = 14'541, relations = 237;
  std::vector<int> dims = {128, 200};
  int triples = 32, shared_negatives = 256, negatives = 5;
  bool adagrad = false;
  double seconds = 2;
};

Options read_options(int argc, char** argv) {
  Options options;
  CLI::App app("Rates of a knowledge graph's models");
  app.add_option("--device", options.device, "cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--threads", options.threads, "CPU threads")->capture_default_str();
  app.add_option("--entities", options.entities, "rows of entities")->capture_default_str();
  app.add_option("--relations", options.relations, "rows of relations")->capture_default_str();
  app.add_option("--dim", options.dims, "columns")->delimiter(',')->capture_default_str();
  app.add_option("--triples", options.triples, "triples a tile")->capture_default_str();
  app.add_option("--shared-negatives", options.shared_negatives, "negatives a tile")->capture_default_str();
  app.add_option("--negatives", options.negatives, "negatives a query, a triple at a time")->capture_default_str();
  app.add_flag("--adagrad", options.adagrad, "tiles make row-wise Adagrad's steps, not SGD's");
  app.add_option("--seconds", options.seconds, "of each case")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return options;
}

/// A model's table and a batch of tiles on one device.
struct Fixture {
  static constexpr Offset kTiles = 1024;
  static constexpr Offset kQueries = 256;

  Fixture(const Options& options, const Model& model, int dim, const Exec& with)
      : exec(with),
        rows(*exec.ledger, (options.relations + options.entities) * padded_stride(dim), "rows"),
        squares(*exec.ledger, options.relations + options.entities, "squares"),
        nodes(*exec.ledger, kTiles * options.triples * 3, "nodes"),
        negatives(*exec.ledger, kTiles * options.shared_negatives, "negatives"),
        results(*exec.ledger, kTiles, "results"),
        vectors(*exec.ledger, kQueries * padded_stride(dim), "vectors"),
        scores(*exec.ledger, kQueries * options.entities, "scores") {
    const Rows<float> table{rows.data(), options.relations + options.entities, dim, padded_stride(dim)};
    kernels::ops(exec).initialize_rows(table, {}, 0.1f, 1, exec);
    std::vector<RowId> drawn;
    const auto entity = [&](Offset i) {
      const auto key = std::uint64_t(i), count = std::uint64_t(options.entities);
      return RowId(options.relations + Offset(below(draw(1, 0, key, 0, Draw::negative).low(), count)));
    };
    for (Offset i = 0; i < nodes.size(); ++i)
      drawn.push_back(i % 3 == 1 ? (entity(i) - RowId(options.relations)) % RowId(options.relations) : entity(i));
    copy_bytes(nodes.data(), drawn.data(), nodes.size() * Offset(sizeof(RowId)), exec);
    wait(exec);
    drawn.clear();
    for (Offset i = 0; i < negatives.size(); ++i) drawn.push_back(entity(nodes.size() + i));
    copy_bytes(negatives.data(), drawn.data(), negatives.size() * Offset(sizeof(RowId)), exec);
    wait(exec);

    batch.shape.score = model.score, batch.shape.dim = dim, batch.shape.margin = 6;
    batch.shape.triples = options.triples, batch.shape.shared_negatives = options.shared_negatives;
    batch.shape.negatives = float(options.negatives);
    batch.tiles = {1, 0, 0, kTiles, 3 * options.triples};
    batch.nodes = nodes.span(), batch.negatives = negatives.span(), batch.rows = table;
    if (options.adagrad) batch.squares = squares.span();
    batch.learning_rate = 0.01f, batch.results = results.span(), batch.first_entity = RowId(options.relations);
    entities = {table.row(options.relations), options.entities, dim, table.stride};
    queries = {vectors.data(), kQueries, dim, table.stride};
    kernels::ops(exec).initialize_rows(queries, {}, 0.1f, 2, exec);
  }

  const Exec& exec;
  Buffer<float> rows, squares;
  Buffer<RowId> nodes, negatives;
  Buffer<kernels::TileResult> results;
  Buffer<float> vectors, scores;
  Rows<float> entities, queries;
  kernels::TripleBatch batch;
};

/// One case beside the limit.
void report(const Options& options, const Model& model, int dim, const char* name, const char* unit, int negatives,
            const Rate& rate, double fma_limit) {
  const double share = rate.flop_per_s() / fma_limit;
  std::cout << nlohmann::ordered_json{{"bench", "triples"},
                                      {"case", name},
                                      {"device", options.device},
                                      {"threads", options.threads},
                                      {"model", model.name},
                                      {"entities", options.entities},
                                      {"relations", options.relations},
                                      {"dim", dim},
                                      {"triples", options.triples},
                                      {"negatives_a_query", negatives},
                                      {"adagrad", options.adagrad},
                                      {"unit", unit},
                                      {"units_per_s", rate.units_per_s},
                                      {"slowest_per_s", rate.slowest},
                                      {"fastest_per_s", rate.fastest},
                                      {"units_per_cpu_s", rate.units_per_cpu_s()},
                                      {"repeats", rate.repeats},
                                      {"load", rate.load(options.threads)},
                                      {"flop_per_unit", rate.flop_per_unit()},
                                      {"flop_per_s", rate.flop_per_s()},
                                      {"share_of_fma_limit", share}}
                   .dump()
            << std::endl;
  std::fprintf(stderr, "%-10s %5d %-16s %9d %12s %6.0f%% %5.2f %12s %8.1f %5.0f%%\n", model.name, dim, name, negatives,
               cat(human_count(rate.units_per_s), " ", unit, "/s").c_str(), 100 * rate.spread(),
               rate.load(options.threads), human_count(rate.units_per_cpu_s()).c_str(), rate.flop_per_s() / 1e9,
               100 * share);
}

void measure_model(const Options& options, const Model& model, int dim, const Exec& exec) {
  constexpr Offset kValues = 1 << 20;
  constexpr int kRounds = 256;
  Fixture f(options, model, dim, exec);
  Buffer<float> chains(*exec.ledger, kValues, "chains");
  const kernels::Ops& ops = kernels::ops(exec);
  const auto triples = double(Fixture::kTiles * options.triples);
  const auto training = [&](double share, int negatives) {
    return Work{share * triples, 0, share * triples * 2 * (negatives + 1) * model.train_flop * dim};
  };
  const auto pairs = double(Fixture::kQueries * options.entities);

  std::vector<Repetition> cases = {
      {.run = [&] { ops.multiply_adds(chains.span(), kRounds, exec); },
       .work =
           [&] {
             return Work{double(kValues), 0, 2.0 * kernels::kMultiplyAddChains * kRounds * double(kValues)};
           }},
      {.run =
           [&] {
             ops.score_rows(model.score, f.queries, f.entities,
                            {f.scores.data(), Fixture::kQueries, int(options.entities), options.entities}, exec);
           },
       .work =
           [&] {
             return Work{pairs, 0, pairs * model.score_flop * dim};
           }},
      {.run = [&] { ops.train_triples(f.batch, exec); },
       .work = [&] { return training(1, options.shared_negatives); }}};
  // A triple at a time with the option's negatives, and with as many as a tile shares on fewer triples.
  const int few = options.negatives, many = options.shared_negatives;
  const double part = double(few + 1) / double(many + 1);
  const auto one_by_one = [&](int negatives, double share) {
    return Repetition{.run =
                          [&f, &options, &exec, negatives, share] {
                            const auto count = Offset(share * double(f.batch.nodes.size / 3));
                            parallel_for(options.threads, count, 64, [&](Offset first, Offset last, int) {
                              bench::SingleTriples(f.batch, options.entities, negatives).train(first, last);
                            });
                          },
                      .work = [=, &training] { return training(share, negatives); }};
  };
  if (!exec.device.is_cuda()) cases.push_back(one_by_one(few, 1)), cases.push_back(one_by_one(many, part));
  const std::vector<Rate> rates = bench::measure_in_turn(cases, options.seconds, exec);

  const double limit = rates[0].flop_per_s();
  report(options, model, dim, "score_rows", "score", 0, rates[1], limit);
  report(options, model, dim, "train_triples", "triple", many, rates[2], limit);
  if (rates.size() == 3) return;
  report(options, model, dim, "a triple a time", "triple", few, rates[3], limit);
  report(options, model, dim, "a triple a time", "triple", many, rates[4], limit);
}

void run(const Options& options) {
  const Device device = choose_device(options.device);
  MemoryLedger ledger(device);
  const Stream stream(device);
  const Exec exec{device, options.threads, stream.get(), &ledger};
  std::fprintf(stderr, "%s (%s), %d threads\n", to_string(device).c_str(), describe(device).c_str(), options.threads);
  std::fprintf(stderr, "%-10s %5s %-16s %9s %21s %7s %5s %12s %8s %6s\n", "model", "dim", "case", "negatives", "rate",
               "spread", "load", "a CPU s", "GFLOP/s", "fma");
  for (const int dim : options.dims)
    for (const Model& model : kModels) measure_model(options, model, dim, exec);
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
