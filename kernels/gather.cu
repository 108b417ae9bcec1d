// Rows out of a table.
#include "kernels/exec.hpp"
#include "kernels/ops.hpp"

namespace gs::kernels::GS_BACKEND {

void gather_rows(const StoredRows&, Span<const RowId>, Rows<float>, const Exec&) {
  throw Error(Fault::internal, "gather_rows");
}
void pack_rows(const StoredRows&, Span<const RowId>, RowType, void*, const Exec&) {
  throw Error(Fault::internal, "pack_rows");
}
void unpack_rows(RowType, const void*, Rows<float>, const Exec&) { throw Error(Fault::internal, "unpack_rows"); }

}  // namespace gs::kernels::GS_BACKEND
