#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>

#include "graphscale/graph.hpp"

#include "src/cli/commands.hpp"

namespace gs::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DiffCommand {
  std::string store, before, after;
  Offset list = 10;
  bool json = false;
};

std::string counts(const GraphChanges& changes) {
  return cat("+", with_commas(changes.added), " -", with_commas(changes.removed));
}

void print_text(const DiffCommand& command, const Graph& before, const Graph& after, const GraphDiff& diff) {
  const auto line = [](const char* what, const auto&... parts) {
    std::cout << std::left << std::setw(20) << what << cat(parts...) << "\n";
  };
  const auto of = [](Offset from, Offset to) { return cat(" (", with_commas(from), " to ", with_commas(to), ")"); };
  line("store", command.store, ", version ", before.info().id, " to ", after.info().id);
  line("nodes", counts(diff.nodes), of(before.info().num_nodes, after.info().num_nodes));
  line("arcs", counts(diff.arcs), of(before.info().num_arcs, after.info().num_arcs), ", ",
       with_commas(diff.reweighted_arcs), " with another weight");
  const auto line_of_change = [&](const char* what, bool from, bool to) {
    if (from != to) line(what, from ? "yes" : "no", " to ", to ? "yes" : "no");
  };
  line_of_change("directed", before.info().directed, after.info().directed);
  line_of_change("weighted", before.info().weighted, after.info().weighted);
  if (before.info().num_relations + after.info().num_relations > 0)
    line("relations", counts(diff.relations), of(before.info().num_relations, after.info().num_relations));

  const auto print_list = [](const char* mark, const std::vector<std::string>& names) {
    for (const std::string& name : names) std::cout << mark << name << "\n";
  };
  print_list("+ node\t", diff.nodes.first_added), print_list("- node\t", diff.nodes.first_removed);
  print_list("+ relation\t", diff.relations.first_added), print_list("- relation\t", diff.relations.first_removed);
  print_list("+ arc\t", diff.arcs.first_added), print_list("- arc\t", diff.arcs.first_removed);
  print_list("~ arc\t", diff.first_reweighted);
}

void print_json(const DiffCommand& command, const Graph& before, const Graph& after, const GraphDiff& diff) {
  const auto changes = [](const GraphChanges& changes) {
    return Json{{"added", changes.added},
                {"removed", changes.removed},
                {"first_added", changes.first_added},
                {"first_removed", changes.first_removed}};
  };
  Json arcs = changes(diff.arcs);
  arcs["reweighted"] = diff.reweighted_arcs, arcs["first_reweighted"] = diff.first_reweighted;
  const Json json{{"store", command.store},
                  {"from", before.info().id},
                  {"to", after.info().id},
                  {"nodes", changes(diff.nodes)},
                  {"arcs", arcs},
                  {"relations", changes(diff.relations)},
                  {"directed", {before.info().directed, after.info().directed}},
                  {"weighted", {before.info().weighted, after.info().weighted}}};
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

void run_diff(const DiffCommand& command) {
  const Graph after = Graph::open(command.store, command.after);
  std::string from = command.before;
  if (from.empty()) from = after.info().parent;
  if (from.empty())
    throw Error(Fault::input, cat(command.store, ": version ", after.info().id,
                                  " was made after no other; name the version to compare it with"));
  const Graph before = Graph::open(command.store, from);
  const GraphDiff found = diff(before, after, command.list);
  command.json ? print_json(command, before, after, found) : print_text(command, before, after, found);
}

}  // namespace

void add_graph_diff(CLI::App& graph) {
  CLI::App* app = graph.add_subcommand("diff", "what one version of a store has and another has not, by names");
  const auto command = std::make_shared<DiffCommand>();
  app->add_option("store", command->store, "the graph store")->required();
  app->add_option("from", command->before, "the earlier version (default: the one that the later was made after)");
  app->add_option("to", command->after, "the later version (default: the current one)");
  app->add_option("--list", command->list, "names and arcs of each kind to print, at most")
      ->check(whole_number)
      ->capture_default_str();
  app->add_flag("--json", command->json, "one JSON object");
  app->callback([command] { run_diff(*command); });
}

}  // namespace gs::cli
