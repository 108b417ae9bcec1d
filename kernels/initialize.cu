// table row i, column c = uniform in [-scale, scale), keyed by (seed, rows[i], c / 4): word2vec's start is scale = 1 /
// (2 dim).
// 16-bit tables take the nearest.
//
// A unit is one row: a thread on either backend; it runs once and is bound by the writes.
#include "kernels/exec.hpp"
#include "kernels/half.hpp"
#include "kernels/ops.hpp"

namespace gs::kernels::GS_BACKEND {

template <class T>
struct InitializeRows {
  StoredRows table;
  RowSequence rows;
  float scale;
  std::uint64_t seed;

  GS_DEV void operator()(Offset first, int count) const {
    for (Offset i = first; i < first + count; ++i) {
      T* const row = static_cast<T*>(table.row(i));
      for (int c = 0; c < table.dim; c += 4) {
        const Philox4 random = draw(seed, 0, rows[i], std::uint32_t(c / 4), Draw::initial);
        for (int k = 0; k < 4 && c + k < table.dim; ++k)
          row[c + k] = nearest<T>((2 * unit_float(random.word[k]) - 1) * scale);
      }
    }
  }
};

void initialize_rows(const StoredRows& table, const RowSequence& rows, float scale, std::uint64_t seed,
                     const Exec& exec) {
  with_type(table.type, [&](auto type) {
    for_each_flock("initialize_rows", table.count, InitializeRows<decltype(type)>{table, rows, scale, seed}, exec);
  });
}

}  // namespace gs::kernels::GS_BACKEND
