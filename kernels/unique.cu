// Distinct rows.
#include "kernels/exec.hpp"
#include "kernels/ops.hpp"

namespace gs::kernels::GS_BACKEND {

void unique_rows(const RowLists&, const Owners&, RowId, const UniqueRows&, Span<GroupCounts>, const Exec&) {
  throw Error(Fault::internal, "unique_rows");
}

}  // namespace gs::kernels::GS_BACKEND
