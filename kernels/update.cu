// One optimizer step a row.
#include "kernels/exec.hpp"
#include "kernels/ops.hpp"

namespace gs::kernels::GS_BACKEND {

void update_rows(const StoredRows&, const StoredRows&, Span<const RowId>, Rows<const float>, Span<const float>,
                 const UpdateRule&, Span<UpdateTotals>, const Exec&) {
  throw Error(Fault::internal, "update_rows");
}

}  // namespace gs::kernels::GS_BACKEND
