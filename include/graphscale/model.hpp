// What is learnt: the tables of a model and the shape of its tiles.
#pragma once

#include <functional>

#include "graphscale/config.hpp"
#include "graphscale/sampler.hpp"

namespace gs {

/// The trainings that a run is made of, one after another: of LINE's both orders, each with half of the columns.
std::vector<Config> parts_of(const Config& config);

/// The tile that a configuration asks for. Walks of more than kTileCentres nodes are cut into tiles of equal size, so
/// that a tile's shape depends on the configuration alone and never on the device.
kernels::TileShape tile_shape(const Config& config);
inline constexpr int kTileCentres = 64;

/// The same for a knowledge graph of so many relations.
kernels::TripleShape triple_shape(const Config& config, Offset relations);
kernels::Score score_of(const ModelConfig& model);  ///< of a knowledge graph's model

/// Rows that every step of a model touches, which come before the nodes' and lie on every rank: the relations of a
/// knowledge graph's model, where reciprocal twice.
Offset dense_rows_of(const Config& config, Offset relations);

/// The most that a pair's mean loss (a query's, of triples) is before anything is learnt, about.
double untrained_loss(const Config& config);

/// A model's tables. Rows are padded to 64 bytes; padding is zero.
struct ModelShape {
  Offset nodes = 0, dense_rows = 0;
  int dim = 0;
  bool one_table = false;      ///< a node has one row; else one as centre and one as context
  bool keeps_squares = false;  ///< a sum for Adagrad a row
  /// Rows start uniform in [-scale, scale), contexts of two tables at 0. dense_columns: of a dense row, the others 0.
  float initial_scale = 0, dense_scale = 0;
  int dense_columns = 0;

  Offset rows() const { return dense_rows + nodes; }
  /// Two tables whose centres start uniform in [-1/(2 dim), 1/(2 dim)), as word2vec's do.
  static ModelShape skip_gram(Offset nodes, int dim);
};

/// The tables that a configuration asks for. Scales: see model.cpp.
ModelShape model_shape(const Config& config, Offset nodes, Offset relations);

/// What a row consists of, by the names that a checkpoint has for it.
inline constexpr const char *kVectors = "vectors",  // of two tables the centres
    *kContexts = "contexts",                        // of two tables
        *kVectorState = "vector_state",             // the optimizer's
            *kContextState = "context_state";

struct NamedTable {
  std::string name;
  kernels::StoredRows rows;  ///< where they are held
};

/// Some rows of all tables, together.
struct TablesPart {
  kernels::RowSequence rows;  ///< which ones, ascending; host memory
  std::vector<NamedTable> tables;
};

/// Where rows start, other than as they are drawn. Rows are the table's: relations before nodes. Asked on several
/// threads.
struct StartRows {
  /// [columns] <- a row's values; false: as it is. Empty: all as they are.
  using Values = std::function<bool(RowId row, float* values)>;

  Values vectors{};                         ///< of two tables the centres; else as drawn
  Values contexts{};                        ///< of two tables; else 0
  Values vector_state{}, context_state{};   ///< the optimizer's; else 0
  std::function<bool(RowId row)> frozen{};  ///< its vector never moves; empty: none
};

/// table row i <- the values of rows[i] (host memory), rounded to the nearest. Waits for the device.
void write_rows(const StartRows::Values& values, const kernels::StoredRows& table, const kernels::RowSequence& rows,
                const Exec& exec);

/// Tables [dense_rows + nodes, dim] float32 on exec's device, trained in place.
class Model {
 public:
  Model(const ModelShape& shape, std::uint64_t seed, const Exec& exec);
  /// Before the first step; waits for the device. Rows trained in place all move: expects none frozen.
  void start_from(const StartRows& start, const Exec& exec);

  Rows<float> centres() const { return rows(centres_); }  ///< the embeddings
  Rows<float> contexts() const { return shape_.one_table ? centres() : rows(contexts_); }
  Span<float> squares() const { return squares_.span(); }  ///< [rows], or empty
  std::vector<NamedTable> tables() const;
  static std::vector<std::pair<const char*, Offset>> bytes(const ModelShape& shape);  ///< held, by purpose

 private:
  Rows<float> rows(const Buffer<float>& table) const {
    return {table.data(), shape_.rows(), shape_.dim, padded_stride(shape_.dim)};
  }

  kernels::StoredRows square_rows() const { return Rows<float>(squares_.data(), squares_.size(), 1, 1); }

  ModelShape shape_;
  Buffer<float> centres_, contexts_, squares_;
};

/// The first value that is not finite in host rows, as (row, column), or (-1, -1).
std::pair<Offset, int> first_not_finite(Rows<const float> rows);

}  // namespace gs
