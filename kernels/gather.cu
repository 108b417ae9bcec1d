// out[i] = table[local_rows[i]], between the types of rows: float32, fp16, bf16.
//
// A unit is a row: a warp (CUDA), or a thread that asks memory for the rows to come (CPU), as rows lie anywhere in the
// table. Both homes of a row are read the same way: on a GPU the cold one through UVA.
//
// A row reads and writes dim values; rounding is to the nearest.
#include "kernels/lanes.hpp"
#include "kernels/ops.hpp"

namespace gs::kernels::GS_BACKEND {

template <class T, class U>
struct CopyRows {
  StoredRows table;
  Span<const RowId> rows;  // empty: in order
  U* out;
  Offset count, stride;  // of out

  GS_DEV void operator()(const Team& team, Offset index, Offset) const {
    const Lanes lanes(team);
    const RowGroup group = lanes.group(index, count);
    const int dim = table.dim;
    for (Offset i = group.first; i < group.last; i += group.step) {
      if (!rows.empty() && i + kAhead < count) ask_for(table.row(rows[i + kAhead]), dim * Offset(sizeof(T)));
      const T* from = static_cast<const T*>(table.row(rows.empty() ? i : rows[i]));
      U* to = out + i * stride;
      lanes.each(dim, [=](int c) {
        if constexpr (!std::is_same_v<T, U>) {
          to[c] = nearest<U>(from[c]);
        } else if constexpr (std::is_same_v<T, float>) {
          to[c] = from[c];
        } else {
          to[c].bits = from[c].bits;  // g++ 12 makes no vectors of copied structs
        }
      });
    }
  }
};

template <class T, class U>
void copy_rows(const char* op, const StoredRows& table, Span<const RowId> rows, U* out, Offset count, Offset stride,
               const Exec& exec) {
  for_each_row_group(op, count, 0, CopyRows<T, U>{table, rows, out, count, stride}, exec);
}

void gather_rows(const StoredRows& table, Span<const RowId> local_rows, Rows<float> out, const Exec& exec) {
  GS_EXPECT(out.count == local_rows.size && out.dim == table.dim, "gather_rows: out is [", out.count, ", ", out.dim,
            "] for ", local_rows.size, " rows of ", table.dim, " columns");
  with_type(table.type, [&](auto type) {
    copy_rows<decltype(type)>("gather_rows", table, local_rows, out.data, out.count, out.stride, exec);
  });
}

void pack_rows(const StoredRows& table, Span<const RowId> local_rows, RowType type, void* packed, const Exec& exec) {
  with_type(table.type, [&](auto from) {
    with_type(type, [&](auto to) {
      copy_rows<decltype(from)>("pack_rows", table, local_rows, static_cast<decltype(to)*>(packed), local_rows.size,
                                table.dim, exec);
    });
  });
}

void unpack_rows(RowType type, const void* packed, Rows<float> out, const Exec& exec) {
  const StoredRows table(type, out.dim, out.dim, out.count, out.count, const_cast<void*>(packed), nullptr);
  with_type(type, [&](auto from) {
    copy_rows<decltype(from)>("unpack_rows", table, {}, out.data, out.count, out.stride, exec);
  });
}

}  // namespace gs::kernels::GS_BACKEND
