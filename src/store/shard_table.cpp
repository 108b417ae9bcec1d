#include "graphscale/store.hpp"

namespace gs {
namespace {

constexpr Offset kLine = 64;

Offset row_stride(int dim, kernels::RowType type) {  // values
  const Offset a_line = kLine / kernels::bytes_of(type);
  return (dim + a_line - 1) / a_line * a_line;
}
Offset state_stride(int columns) { return columns <= 1 ? columns : padded_stride(columns); }

}  // namespace

Offset ShardTable::bytes_a_row(int dim, kernels::RowType type, int state_columns) {
  return row_stride(dim, type) * kernels::bytes_of(type) + 4 * state_stride(state_columns);
}

ShardTable::ShardTable(const std::string& name, Offset rows, Offset hot_rows, int dim, kernels::RowType type,
                       int state_columns, MemoryLedger& device, MemoryLedger& host)
    : dim_(dim),
      state_columns_(state_columns),
      type_(type),
      rows_(rows),
      hot_rows_(std::min(rows, hot_rows)),
      hot_(device, hot_rows_ * bytes_a_row(dim, type, state_columns), name + ": hot rows"),
      cold_(host, (rows - hot_rows_) * bytes_a_row(dim, type, state_columns), name + ": cold rows") {}

kernels::StoredRows ShardTable::rows() const {
  return {type_, dim_, row_stride(dim_, type_), rows_, hot_rows_, hot_.data(), cold_.data()};
}

kernels::StoredRows ShardTable::state() const {
  const Offset row_bytes = row_stride(dim_, type_) * kernels::bytes_of(type_);
  const auto behind = [&](const Buffer<char>& home, Offset count) {
    return home.data() ? home.data() + count * row_bytes : nullptr;
  };
  return {kernels::RowType::fp32,
          state_columns_,
          state_stride(state_columns_),
          rows_,
          hot_rows_,
          behind(hot_, hot_rows_),
          behind(cold_, rows_ - hot_rows_)};
}

}  // namespace gs
