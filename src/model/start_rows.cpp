// Rows that start from given values: a block of the table at a time, by way of host memory.
#include <algorithm>
#include <atomic>

#include "graphscale/model.hpp"
#include "kernels/half.hpp"

namespace gs {
namespace {

constexpr Offset kBlockBytes = 16 << 20;
constexpr Offset kGrain = 256;  // rows that a thread takes at once

}  // namespace

void write_rows(const StartRows::Values& values, const kernels::StoredRows& table, const kernels::RowSequence& rows,
                const Exec& exec) {
  if (!values || table.dim == 0) return;
  const Offset row_bytes = table.stride * kernels::bytes_of(table.type);
  const Offset block_rows = std::max<Offset>(1, kBlockBytes / std::max<Offset>(1, row_bytes));
  std::vector<char> block;
  for (Offset first = 0, last = 0; first < table.count; first = last) {
    last = std::min(first + block_rows, first < table.hot_rows ? table.hot_rows : table.count);  // within one home
    block.resize(std::size_t((last - first) * row_bytes));
    copy_bytes(block.data(), table.row(RowId(first)), Offset(block.size()), exec);
    wait(exec);
    std::atomic<bool> is_given = false;
    kernels::with_type(table.type, [&](auto type) {
      using T = decltype(type);
      parallel_for(exec.threads, last - first, kGrain, [&](Offset from, Offset to, int) {
        std::vector<float> vector(std::size_t(table.dim));
        for (Offset i = from; i < to; ++i) {
          if (!values(rows[first + i], vector.data())) continue;
          T* const row = reinterpret_cast<T*>(block.data() + i * row_bytes);
          std::transform(vector.begin(), vector.end(), row, kernels::nearest<T>);
          is_given = true;
        }
      });
    });
    if (!is_given) continue;
    copy_bytes(table.row(RowId(first)), block.data(), Offset(block.size()), exec);
    wait(exec);
  }
}

}  // namespace gs
