// The final numbering of rows: by degree, then by name.
#pragma once

#include "graphscale/graph.hpp"

namespace gs {

inline Offset name_count(const BuiltGraph& names) {
  return Offset(names.name_bounds.empty() ? names.name_numbers.size() : names.name_bounds.size() - 1);
}

/// The name of `id` as bytes.
std::string name_text(const BuiltGraph& names, RowId id);

/// [n] ids in the order of their rows: descending degree; equal degrees by name, canonical integers first and by
/// value, then the others by bytes. A total order, so the same however the ids were dealt out.
std::vector<RowId> ids_by_row(Span<const Offset> degrees, const BuiltGraph& names, int threads);

/// Reorders the names (numbers or bytes) so that row i has the name of ids[i].
void reorder_names(BuiltGraph& names, Span<const RowId> ids, int threads);

}  // namespace gs
