// Tiles of triples: losses and gradients against a slow twin, and the twin's gradients against differences of its loss.
#include "tests/support/stored_table.hpp"
#include "tests/support/triple_case.hpp"

namespace gs {
namespace {

using kernels::Score;
using kernels::TripleLoss;
using kernels::TripleShape;
using twin::Row;
using twin::Triple;

constexpr Score kScores[] = {Score::transe_l1, Score::transe_l2, Score::distmult, Score::complex, Score::rotate};
constexpr TripleLoss kLosses[] = {TripleLoss::logistic, TripleLoss::margin, TripleLoss::softmax};
constexpr double kTolerance = 2e-5;  // of the largest gradient of a kind: float32 sums of up to 200 terms
constexpr Offset kEntities = 40;

struct Regularizer {
  float l2, n3;
};

/// Every model x loss x weights x reciprocal x regulariser; `variant` goes through the sizes.
template <class Body>
void each_shape(const Body& body) {
  int variant = 0;
  for (const Score score : kScores)
    for (const TripleLoss loss : kLosses)
      for (const float adversarial : {0.0f, 0.7f})
        for (const int reciprocal : {0, TripleCase::kRelations})
          for (const Regularizer regularizer : {Regularizer{0, 0}, {0.3f, 0}, {0, 0.2f}}) {
            TripleShape shape;
            shape.score = score, shape.loss = loss, shape.margin = 0.75f;
            shape.adversarial = adversarial, shape.reciprocal = reciprocal;
            shape.l2 = regularizer.l2, shape.n3 = regularizer.n3;
            SCOPED_TRACE(testing::Message()
                         << "score " << int(score) << ", loss " << int(loss) << ", adversarial " << adversarial
                         << ", reciprocal " << reciprocal << ", l2 " << regularizer.l2 << ", n3 " << regularizer.n3);
            body(shape, variant++);
          }
}

TripleShape sized(TripleShape shape, int triples, int negatives, int dim) {
  shape.triples = triples, shape.shared_negatives = negatives, shape.dim = dim;
  shape.negatives = 0.125f * float(negatives);  // an equal weight is exact, and so are steps by signs
  return shape;
}
TripleShape sized(const TripleShape& shape, int variant) {
  constexpr int kTriples[] = {3, 1, 32}, kNegatives[] = {5, 1, 64}, kDims[] = {10, 2, 64, 200};
  return sized(shape, kTriples[variant % 3], kNegatives[variant / 3 % 3], kDims[variant % 4]);
}

/// The triples of the case and as many that its negatives make.
std::set<Triple> known_in(const TripleCase& at) {
  std::set<Triple> known;
  for (std::size_t i = 0; i < at.node_values.size(); i += std::size_t(at.shape.width())) {
    if (at.node_values[i] == kNoRow) continue;
    const RowId h = at.node_values[i], r = at.node_values[i + 1], t = at.node_values[i + 2];
    const std::size_t s = i % at.negative_values.size();
    known.insert({h, r, t});
    known.insert({h, r, at.negative_values[s]}), known.insert({at.negative_values[s], r, t});
  }
  return known;
}

/// What all tiles of the batch give, in the table as it is.
struct Expected {
  Expected(const TripleCase& at, const std::set<Triple>& known)
      : table(at.table_of(at.row_values)), gradients(table.size(), Row(std::size_t(at.shape.dim))) {
    for (Offset i = 0; i < at.batch.tiles.count; ++i) {
      tiles.push_back(twin::triple_tile(at.host_batch(), i, known, table, table));
      for (const twin::Place& place : tiles.back().places)
        for (std::size_t c = 0; c < place.gradient.size(); ++c) gradients[place.row][c] += place.gradient[c];
    }
  }
  std::vector<Row> table, gradients;
  std::vector<twin::TripleTileTwin> tiles;
};

void expect_near(const std::vector<Row>& got, const std::vector<Row>& expected, double tolerance) {
  double largest = 1;
  for (const Row& row : expected)
    for (const double x : row) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < got.size(); ++i)
    for (std::size_t c = 0; c < got[i].size(); ++c)
      ASSERT_NEAR(got[i][c], expected[i][c], tolerance * largest) << "row " << i << ", column " << c;
}

void expect_results(const TripleCase& at, const Expected& expected) {
  const std::vector<kernels::TileResult> results = at.results.host();
  for (std::size_t i = 0; i < results.size(); ++i) {
    ASSERT_EQ(results[i].pairs, expected.tiles[i].queries) << "tile " << i;
    ASSERT_NEAR(double(results[i].loss), expected.tiles[i].loss, kTolerance * (1 + expected.tiles[i].loss));
  }
}

TEST(TripleTwin, GradientsAreDifferencesOfItsLoss) {
  TestDevice on(Backend::cpu);
  each_shape([&](const TripleShape& shape, int variant) {
    constexpr double kStep = 1e-6, kError = 1e-6;
    const TripleCase at(on, sized(shape, 3, 5, 10), 1, kEntities, std::uint64_t(variant));
    const std::set<Triple> known = known_in(at);
    const Expected expected(at, known);
    for (std::uint64_t direction = 0; direction < 3; ++direction) {
      std::vector<Row> up = expected.table, down = expected.table;
      double slope = 0;
      const std::vector<float> steps = normal_values(at.row_count * at.shape.dim, direction);
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const std::size_t row = i / std::size_t(at.shape.dim), c = i % std::size_t(at.shape.dim);
        up[row][c] += kStep * double(steps[i]), down[row][c] -= kStep * double(steps[i]);
        slope += expected.gradients[row][c] * double(steps[i]);
      }

      const double above = twin::triple_tile(at.host_batch(), 0, known, up, expected.table).loss;
      const double below = twin::triple_tile(at.host_batch(), 0, known, down, expected.table).loss;

      ASSERT_NEAR((above - below) / (2 * kStep), slope, kError * (1 + std::abs(slope)));
    }
  });
}

class TripleTiles : public OnBackends {};

TEST_P(TripleTiles, SumTheTwinsGradientsAndLeaveTheTable) {
  TestDevice on(GetParam(), 1);
  each_shape([&](const TripleShape& shape, int variant) {
    TripleCase at(on, sized(shape, variant), 3, kEntities, std::uint64_t(variant));
    const Values<float> gradients(on, at.zero_rows());
    at.batch.gradients.contexts = at.rows_of(gradients);
    const std::set<Triple> known = variant % 2 ? known_in(at) : std::set<Triple>();
    const KnownCase looked_up(on, known, RowId(at.first_entity), kEntities);
    at.batch.known = looked_up.view();

    on.ops.train_triples(at.batch, on.exec);

    const Expected expected(at, known);
    expect_results(at, expected);
    expect_near(at.table_of(gradients.host()), expected.gradients, kTolerance);
    EXPECT_EQ(at.rows.host(), at.row_values);
    at.nodes.host(), at.negatives.host();  // guards
  });
}

TEST_P(TripleTiles, TrainedInPlaceAreTheTwinsStepsInOrder) {
  TestDevice on(GetParam(), 1);
  const Offset tiles = GetParam() == Backend::cuda ? 1 : 2;  // of which a GPU takes many at once
  each_shape([&](const TripleShape& shape, int variant) {
    constexpr float kRate = 1.0f / 64, kEpsilon = 1e-3f;
    const bool adagrad = variant % 2 == 1;
    TripleCase at(on, sized(shape, variant / 2), tiles, kEntities, std::uint64_t(variant));
    std::vector<float> first_squares = normal_values(at.row_count, 3);
    for (float& x : first_squares) x = std::abs(x);
    const Values<float> squares(on, first_squares);
    if (adagrad) at.batch.squares = squares.span();
    at.batch.learning_rate = kRate, at.batch.epsilon = kEpsilon;

    on.ops.train_triples(at.batch, on.exec);

    std::vector<Row> table = at.table_of(at.row_values);
    std::vector<double> sums(first_squares.begin(), first_squares.end());
    for (Offset i = 0; i < tiles; ++i) {
      const twin::TripleTileTwin tile = twin::triple_tile(at.host_batch(), i, {}, table, table);
      for (const twin::Place& place : tile.places)
        for (const double g : place.gradient) sums[place.row] += adagrad ? g * g / at.shape.dim : 0;
      for (const twin::Place& place : tile.places) {
        const double rate = double(kRate) / (adagrad ? std::sqrt(sums[place.row]) + double(kEpsilon) : 1);
        for (std::size_t c = 0; c < place.gradient.size(); ++c) table[place.row][c] -= rate * place.gradient[c];
      }
    }
    expect_near(at.table_of(at.rows.host()), table, kTolerance);
    const std::vector<float> last_squares = squares.host();
    for (std::size_t i = 0; i < sums.size(); ++i)
      ASSERT_NEAR(double(last_squares[i]), sums[i], kTolerance * (1 + sums[i])) << "row " << i;
  });
}

TEST_P(TripleTiles, OfSlotsMaskWhatIsKnownOfTheirRows) {
  TestDevice on(GetParam(), 1);
  for (const int reciprocal : {0, TripleCase::kRelations}) {
    TripleShape shape;
    shape.reciprocal = reciprocal;
    TripleCase at(on, sized(shape, 3, 64, 10), 2, kEntities, 5);
    const std::set<Triple> known = known_in(at);
    const KnownCase looked_up(on, known, RowId(at.first_entity), kEntities);
    const Expected expected(at, known);
    std::vector<RowId> rows, slots(std::size_t(at.row_count));  // a slot's row, a row's slot
    for (Offset i = 0; i < at.row_count; ++i) {
      rows.push_back(RowId(shuffled(std::uint64_t(i), std::uint64_t(at.row_count), 7)));
      slots[rows.back()] = RowId(i);
    }
    const auto slots_of = [&](std::vector<RowId> of) {
      for (RowId& row : of) row = row == kNoRow ? kNoRow : slots[row];
      return of;
    };
    const Offset stride = padded_stride(at.shape.dim);
    std::vector<float> moved = at.row_values;
    for (Offset i = 0; i < at.row_count; ++i)
      std::copy_n(at.row_values.begin() + rows[std::size_t(i)] * stride, stride, moved.begin() + i * stride);
    const Values<RowId> nodes(on, slots_of(at.node_values)), negatives(on, slots_of(at.negative_values));
    const Values<RowId> global(on, rows);
    const Values<float> values(on, moved), gradients(on, at.zero_rows());
    at.batch.nodes = nodes.span(), at.batch.negatives = negatives.span();
    at.batch.global_rows = global.span(), at.batch.rows = at.rows_of(values);
    at.batch.gradients.contexts = at.rows_of(gradients), at.batch.known = looked_up.view();

    on.ops.train_triples(at.batch, on.exec);

    expect_results(at, expected);
    const std::vector<Row> got = at.table_of(gradients.host());
    std::vector<Row> in_order(got.size());
    for (std::size_t i = 0; i < got.size(); ++i) in_order[rows[i]] = got[i];
    expect_near(in_order, expected.gradients, kTolerance);
  }
}

TEST_P(TripleTiles, AreSafeWhereScoresAreFarApartAndWhereNothingIsLeft) {
  TestDevice on(GetParam(), 1);
  each_shape([&](TripleShape shape, int variant) {
    if (variant % 3 != 0) return;  // one of the regularisers
    for (const bool all_masked : {false, true}) {
      TripleCase at(on, sized(shape, 3, 5, 64), 1, all_masked ? 1 : kEntities, std::uint64_t(variant));
      for (float& x : at.row_values) x *= 64;
      const Values<float> rows(on, at.row_values), gradients(on, at.zero_rows());
      at.batch.rows = at.rows_of(rows), at.batch.gradients.contexts = at.rows_of(gradients);

      on.ops.train_triples(at.batch, on.exec);

      const Expected expected(at, {});
      expect_results(at, expected);
      expect_near(at.table_of(gradients.host()), expected.gradients, 1e-4);  // an exponent of 10^4 has fewer places
    }
  });
}

TEST_P(TripleTiles, HaveNoGradientWhereDistancesAreZero) {
  TestDevice on(GetParam(), 1);
  for (const Score score : {Score::transe_l1, Score::transe_l2, Score::rotate}) {
    TripleShape shape;
    shape.score = score;
    TripleCase at(on, sized(shape, 3, 5, 10), 1, kEntities, 1);
    for (std::size_t i = 0; i < at.row_values.size(); ++i) {  // relations are 0, entities all alike
      const Offset row = Offset(i) / padded_stride(10), c = Offset(i) % padded_stride(10);
      at.row_values[i] = row < at.first_entity || c >= 10 ? 0.0f : float(c + 1);
    }
    const Values<float> rows(on, at.row_values), gradients(on, at.zero_rows());
    at.batch.rows = at.rows_of(rows), at.batch.gradients.contexts = at.rows_of(gradients);

    on.ops.train_triples(at.batch, on.exec);

    EXPECT_EQ(gradients.host(), at.zero_rows()) << "score " << int(score);
  }
}

TEST_P(TripleTiles, ShowNanInTheLoss) {
  TestDevice on(GetParam(), 1);
  each_shape([&](const TripleShape& shape, int variant) {
    if (variant % 3 != 0) return;
    TripleCase at(on, sized(shape, 3, 5, 10), 1, kEntities, std::uint64_t(variant));
    const RowId bad[] = {at.node_values[0], at.node_values[1], at.negative_values[4]};
    for (const RowId row : bad) {
      std::vector<float> values = at.row_values;
      values[row * 16 + 4] = std::nanf("");
      const Values<float> rows(on, values), gradients(on, at.zero_rows());
      at.batch.rows = at.rows_of(rows), at.batch.gradients.contexts = at.rows_of(gradients);

      on.ops.train_triples(at.batch, on.exec);

      EXPECT_TRUE(std::isnan(at.results.host()[0].loss)) << "row " << row;
    }
  });
}

TEST_P(TripleTiles, RefuseWhatDoesNotFitTogether) {
  TestDevice on(GetParam(), 1);
  TripleShape shape;
  shape.score = Score::complex;
  TripleCase at(on, sized(shape, 3, 5, 10), 2, kEntities, 1);
  const auto fault_of = [&](auto change) {
    kernels::TripleBatch batch = at.batch;
    change(batch);
    try {
      on.ops.train_triples(batch, on.exec);
    } catch (const Error& error) {
      return error.fault;
    }
    ADD_FAILURE() << "was trained";
    return Fault::usage;
  };

  EXPECT_EQ(fault_of([](auto& batch) { batch.shape.dim = 9, batch.rows.dim = 9; }), Fault::internal);
  EXPECT_EQ(fault_of([](auto& batch) { batch.shape.dim = 12; }), Fault::internal);
  EXPECT_EQ(fault_of([](auto& batch) { batch.nodes.size -= 1; }), Fault::internal);
  EXPECT_EQ(fault_of([](auto& batch) { batch.negatives.size -= 1; }), Fault::internal);
  EXPECT_EQ(fault_of([](auto& batch) { batch.results.size -= 1; }), Fault::internal);
  EXPECT_EQ(fault_of([&](auto& batch) { batch.squares = {batch.rows.data, at.row_count - 1}; }), Fault::internal);
  EXPECT_EQ(fault_of([](auto& batch) { batch.gradients.contexts = batch.rows, --batch.gradients.contexts.count; }),
            Fault::internal);
  EXPECT_EQ(at.rows.host(), at.row_values);
}

TEST_P(TripleTiles, ThatATeamsScratchCannotHoldAreRefusedWithWhatToLower) {
  if (GetParam() == Backend::cpu) GTEST_SKIP() << "a CPU thread takes what it needs";
  TestDevice on(GetParam(), 1);
  TripleShape shape;
  TripleCase at(on, sized(shape, 256, 4096, 10), 1, kEntities, 1);

  try {
    on.ops.train_triples(at.batch, on.exec);
    ADD_FAILURE() << "was trained";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::usage);
    EXPECT_NE(std::string(error.what()).find("lower sampler.triples_per_tile or sampler.shared_negatives"),
              std::string::npos)
        << error.what();
  }
}

GS_ON_ALL_BACKENDS(TripleTiles);

}  // namespace
}  // namespace gs
