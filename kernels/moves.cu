// Steps of second-order walkers whose graph lies in parts (see Walker): the owner of v proposes, the owner of t knows
// t's neighbours. Draws are those of make_walks.
//
// A unit is a walker or a question; nothing is prefetched but among a flock's questions: messages cost more.
#include "kernels/second_order.hpp"

namespace gs::kernels::GS_BACKEND {

GS_DEV Stand stand_of(const SecondOrder& order, const Walker& walker) {
  const ArcDraw& arcs = order.arcs;
  Stand at{walker.local_row, arcs.arcs(walker.local_row), walker.from, false, Offset(walker.from_degree), kUnknown};
  if (order.needs_back_weight() && at.from != kNoRow) at.back_weight = order.weight(arcs.arcs_to(at.arcs, at.from));
  return at;
}

struct ProposeMoves {
  SecondOrder order;
  Span<const Walker> walkers;
  Span<Move> moves;
  Span<RowId> asked;  // [n, kWalkTries]

  GS_DEV void operator()(Offset first, int count) const {
    for (int f = 0; f < count; ++f) moves[first + f] = propose(walkers[first + f], &asked[(first + f) * kWalkTries]);
  }

 private:
  GS_DEV Move propose(const Walker& walker, RowId* asks) const {
    const ArcDraw& arcs = order.arcs;
    const Stand at = stand_of(order, walker);
    constexpr Offset kMost = 0xFFFFFFFF;
    Move move{kNoRow, std::uint32_t(at.arcs.degree < kMost ? at.arcs.degree : kMost)};
    if (at.arcs.degree == 0) return move;
    const bool is_at_hub = order.is_at_hub(at);
    const Chances chances = at.is_certain() ? SecondOrder::kCertain
                            : is_at_hub     ? order.chances_at_hub(at, order.weight_of_all(at))
                                            : order.chances(at);
    int number = 0;
    do {
      const Philox4 random = order.random(std::uint64_t(walker.walk), walker.step, number);
      const double point = SecondOrder::point_of(SecondOrder::coin_of(random), chances);
      const RowId x = point < chances.excess ? at.from : arcs.graph.targets[order.arc_of(at, random)];
      if (point < (x == at.from ? chances.back : chances.low)) {
        move.next = x;
        return move;
      }
      if (x != at.from && !is_at_hub) asks[move.asked++] = x;
    } while (++number < order.tries(at));
    move.is_open = true;
    return move;
  }
};

struct FindArcs {
  ArcDraw arcs;
  Span<const ArcQuestion> questions;
  Span<std::uint8_t> found;

  GS_DEV void operator()(Offset first, int count) const {
    for (int f = 0; f < count; ++f) prefetch(&arcs.graph.arcs[questions[first + f].local_row]);
    for (int f = 0; f < count; ++f) {
      const ArcQuestion question = questions[first + f];
      Search search(arcs.targets(arcs.arcs(question.local_row)), question.target);
      search.finish();
      found[first + f] = search.found();
    }
  }
};

struct DrawMoves {
  SecondOrder order;
  Span<const Walker> walkers;
  Span<const Offset> lists;  // [n, 2]
  Span<const RowId> listed;
  Span<RowId> next;

  GS_DEV void operator()(Offset first, int count) const {
    for (Offset i = first; i < first + count; ++i) {
      const Stand at = stand_of(order, walkers[i]);
      const NearListed near{order.arcs, at, {listed.data + lists[2 * i], lists[2 * i + 1]}};
      next[i] = order.choose(std::uint64_t(walkers[i].walk), walkers[i].step, at, near);
    }
  }
};

void propose_moves(const WalkGraph& graph, const WalkBatch& batch, Span<const Walker> walkers, Span<Move> moves,
                   Span<RowId> asked, const Exec& exec) {
  GS_EXPECT(moves.size == walkers.size && asked.size == walkers.size * kWalkTries, "propose_moves: ", moves.size,
            " moves and ", asked.size, " rows for ", walkers.size, " walkers");
  for_each_flock("propose_moves", walkers.size, ProposeMoves{{graph, batch}, walkers, moves, asked}, exec);
}

void find_arcs(const WalkGraph& graph, Span<const ArcQuestion> questions, Span<std::uint8_t> found, const Exec& exec) {
  GS_EXPECT(found.size == questions.size, "find_arcs: ", found.size, " answers to ", questions.size, " questions");
  for_each_flock("find_arcs", questions.size, FindArcs{{graph}, questions, found}, exec);
}

void draw_moves(const WalkGraph& graph, const WalkBatch& batch, Span<const Walker> walkers, Span<const Offset> lists,
                Span<const RowId> listed, Span<RowId> next, const Exec& exec) {
  GS_EXPECT(next.size == walkers.size && lists.size == 2 * walkers.size, "draw_moves: ", next.size, " places and ",
            lists.size, " ends of lists for ", walkers.size, " walkers");
  for_each_flock("draw_moves", walkers.size, DrawMoves{{graph, batch}, walkers, lists, listed, next}, exec);
}

}  // namespace gs::kernels::GS_BACKEND
