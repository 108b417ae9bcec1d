#include "graphscale/model.hpp"

#include <cmath>

namespace gs {
namespace {

constexpr double kPi = 3.14159265358979323846;

/// Half the range of the uniform values that a row starts with.
double initial_scale(const Config& config) {
  const ModelConfig& model = config.model;
  const double dim = model.dim;
  if (!is_knowledge_graph_model(model.kind)) return 0.5 / dim;  // word2vec's, LINE's
  // Distances of fresh vectors are then about the margin (Sun et al., "RotatE", 2019).
  if (model.kind == "rotate") return (model.margin + 2) / (dim / 2);
  if (model.kind == "transe") return (model.margin + 2) / (model.distance == "l1" ? dim : std::sqrt(dim));
  return 1 / std::sqrt(dim);  // products of three are small, and vectors have length 1 / sqrt 3
}

}  // namespace

std::vector<Config> parts_of(const Config& config) {
  if (config.model.kind != "line" || config.model.order != "both") return {config};
  std::vector<Config> parts(2, config);
  for (Config& part : parts) part.model.dim = config.model.dim / 2;
  parts[0].model.order = "first", parts[1].model.order = "second";
  return parts;
}

kernels::TileShape tile_shape(const Config& config) {
  kernels::TileShape shape;
  shape.kind = tile_kind(config);
  const bool of_walks = shape.kind == kernels::TileKind::walk;
  shape.triple_width = triple_width(config);
  shape.both_ways = true;  // of a directed graph's edges the caller says otherwise
  shape.walk_length = unit_length(config);
  shape.tiles_per_walk = of_walks ? (shape.walk_length + kTileCentres - 1) / kTileCentres : 1;
  shape.window = of_walks ? config.model.window : 1;
  shape.shrink_window = of_walks && config.model.shrink_window;
  shape.shared_negatives = config.sampler.shared_negatives;
  shape.negatives = float(config.model.negatives);
  shape.dim = config.model.dim;
  return shape;
}

kernels::Score score_of(const ModelConfig& model) {
  using kernels::Score;
  return model.kind == "transe"    ? (model.distance == "l1" ? Score::transe_l1 : Score::transe_l2)
         : model.kind == "complex" ? Score::complex
         : model.kind == "rotate"  ? Score::rotate
                                   : Score::distmult;
}

kernels::TripleShape triple_shape(const Config& config, Offset relations) {
  const ModelConfig& model = config.model;
  kernels::TripleShape shape;
  shape.score = score_of(model);
  shape.loss = model.loss == "margin"    ? kernels::TripleLoss::margin
               : model.loss == "softmax" ? kernels::TripleLoss::softmax
                                         : kernels::TripleLoss::logistic;
  shape.dim = model.dim;
  shape.triples = config.sampler.triples_per_tile;
  shape.shared_negatives = config.sampler.shared_negatives;
  shape.negatives = float(model.negatives);
  shape.margin = float(model.margin);
  shape.adversarial = float(model.adversarial);
  (model.regularizer == "n3" ? shape.n3 : shape.l2) = model.regularizer == "none" ? 0 : float(model.regularization);
  shape.reciprocal = model.reciprocal ? int(relations) : 0;
  return shape;
}

Offset dense_rows_of(const Config& config, Offset relations) {
  return is_knowledge_graph_model(config.model.kind) ? relations * (config.model.reciprocal ? 2 : 1) : 0;
}

double untrained_loss(const Config& config) {
  const ModelConfig& model = config.model;
  const double k = model.negatives;
  if (!is_knowledge_graph_model(model.kind)) return (1 + k) * std::log(2.0);
  if (model.loss == "softmax") return std::log(1 + k) + 1;
  return (1 + k) * (std::log(2.0) + model.margin);
}

ModelShape ModelShape::skip_gram(Offset nodes, int dim) {
  ModelShape shape;
  shape.nodes = nodes, shape.dim = dim;
  shape.initial_scale = 0.5f / float(dim);
  return shape;
}

ModelShape model_shape(const Config& config, Offset nodes, Offset relations) {
  const bool of_triples = is_knowledge_graph_model(config.model.kind), of_phases = config.model.kind == "rotate";
  ModelShape shape;
  shape.nodes = nodes, shape.dim = config.model.dim;
  shape.dense_rows = dense_rows_of(config, relations);
  shape.one_table = of_triples || (config.model.kind == "line" && config.model.order == "first");
  shape.keeps_squares = of_triples && config.training.optimizer == "adagrad";
  shape.initial_scale = float(initial_scale(config));
  shape.dense_scale = of_phases ? float(kPi) : shape.initial_scale;
  shape.dense_columns = of_phases ? config.model.dim / 2 : config.model.dim;
  return shape;
}

Model::Model(const ModelShape& shape, std::uint64_t seed, const Exec& exec) : shape_(shape) {
  const Offset values = shape.rows() * padded_stride(shape.dim);
  centres_ = {*exec.ledger, values, shape.one_table ? "model: rows" : "model: centre table"};
  if (!shape.one_table) contexts_ = {*exec.ledger, values, "model: context table"};
  squares_ = {*exec.ledger, shape.keeps_squares ? shape.rows() : 0, "model: squared gradients"};
  const kernels::Ops& ops = kernels::ops(exec);
  const Rows<float> all = centres();
  ops.initialize_rows(Rows<float>(all.data, shape.dense_rows, shape.dense_columns, all.stride), {}, shape.dense_scale,
                      seed, exec);
  ops.initialize_rows(Rows<float>(all.row(shape.dense_rows), shape.nodes, shape.dim, all.stride),
                      {RowId(shape.dense_rows)}, shape.initial_scale, seed, exec);
}

void Model::start_from(const StartRows& start, const Exec& exec) {
  GS_EXPECT(!start.frozen, "model: rows trained in place cannot be frozen; ShardedTables can freeze them");
  write_rows(start.vectors, centres(), {}, exec);
  if (!shape_.one_table) write_rows(start.contexts, contexts(), {}, exec);
  if (shape_.keeps_squares) write_rows(start.vector_state, square_rows(), {}, exec);
}

std::vector<NamedTable> Model::tables() const {
  std::vector<NamedTable> tables{{kVectors, centres()}};
  if (!shape_.one_table) tables.push_back({kContexts, contexts()});
  if (shape_.keeps_squares) tables.push_back({kVectorState, square_rows()});
  return tables;
}

std::vector<std::pair<const char*, Offset>> Model::bytes(const ModelShape& shape) {
  const Offset table = shape.rows() * padded_stride(shape.dim) * Offset(sizeof(float));
  return {{shape.one_table ? "model: rows" : "model: centre table", table},
          {"model: context table", shape.one_table ? 0 : table},
          {"model: squared gradients", shape.keeps_squares ? shape.rows() * Offset(sizeof(float)) : 0}};
}

std::pair<Offset, int> first_not_finite(Rows<const float> rows) {
  for (Offset i = 0; i < rows.count; ++i) {
    const float* const row = rows.row(i);
    float poison = 0;  // 0 * x is 0 for finite x, else NaN: a sum that vectorises, where a test a value would not
#pragma omp simd reduction(+ : poison)
    for (int c = 0; c < rows.dim; ++c) poison += 0 * row[c];
    if (poison == 0) continue;
    for (int c = 0; c < rows.dim; ++c)
      if (!std::isfinite(row[c])) return {i, c};
  }
  return {-1, -1};
}

}  // namespace gs
