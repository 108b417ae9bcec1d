#include "graphscale/query.hpp"

#include <iostream>
#include <nlohmann/json.hpp>

#include "src/cli/commands.hpp"

namespace gs::cli {
namespace {

struct Arguments {
  std::string run, names_file, metric = "cosine";
  std::vector<std::string> nodes;
  QueryOptions options;
  bool json = false;
};

const std::map<std::string, Metric> kMetrics{{"cosine", Metric::cosine}, {"dot", Metric::dot}, {"l2", Metric::l2}};

RowId row_of(const std::string& node, const Embeddings& embeddings, const std::string& run) {
  if (const auto row = embeddings.names().find(node)) return *row;
  std::string similar;
  for (const std::string& name : embeddings.names().similar(node, 3)) similar += (similar.empty() ? "" : ", ") + name;
  throw Error(Fault::input,
              cat(run, ": no node is named \"", node, "\"", similar.empty() ? "" : "; names like it: " + similar));
}

using Answers = std::vector<std::vector<Neighbour>>;

void print_text(const Arguments& arguments, const Embeddings& embeddings, const Answers& answers) {
  const bool larger = larger_is_better(arguments.options.metric);
  for (std::size_t q = 0; q < answers.size(); ++q) {
    std::cout << (q == 0 ? "" : "\n") << "# " << arguments.nodes[q] << ": " << arguments.metric << ", "
              << (larger ? "larger is nearer" : "smaller is nearer") << '\n';
    for (const Neighbour& neighbour : answers[q])
      std::cout << embeddings.names().name(neighbour.row) << '\t' << neighbour.score << '\n';
  }
}

void print_json(const Arguments& arguments, const Embeddings& embeddings, const Answers& answers) {
  nlohmann::ordered_json queries = nlohmann::ordered_json::array();
  for (std::size_t q = 0; q < answers.size(); ++q) {
    nlohmann::ordered_json neighbours = nlohmann::ordered_json::array();
    for (const Neighbour& neighbour : answers[q])
      neighbours.push_back(
          {{"name", embeddings.names().name(neighbour.row)}, {"row", neighbour.row}, {"score", neighbour.score}});
    queries.push_back({{"name", arguments.nodes[q]}, {"neighbours", std::move(neighbours)}});
  }
  const nlohmann::ordered_json answer{{"metric", arguments.metric},
                                      {"larger_is_nearer", larger_is_better(arguments.options.metric)},
                                      {"queries", std::move(queries)}};
  // Names that are not UTF-8 have U+FFFD in their place; the row still tells them apart.
  std::cout << answer.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

void run(Arguments& arguments) {
  if (arguments.options.k < 0)
    throw Error(Fault::usage, cat("-k: ", arguments.options.k, " is negative; expected 0 or more"));
  arguments.options.metric = kMetrics.at(arguments.metric);
  const Embeddings embeddings = Embeddings::open(arguments.run, arguments.names_file);
  std::vector<RowId> rows;
  for (const std::string& node : arguments.nodes) rows.push_back(row_of(node, embeddings, arguments.run));

  const Answers answers = nearest(embeddings.rows(), rows, arguments.options);
  if (arguments.json)
    print_json(arguments, embeddings, answers);
  else
    print_text(arguments, embeddings, answers);
}

}  // namespace

void add_query(CLI::App& app, Common& common) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App& command = *app.add_subcommand("query", "Print the nodes nearest to given ones");
  command.add_option("RUN", arguments->run, "a run's folder, its embeddings folder, or an .npy file")->required();
  // The names as they came: a container's conversion would take "{}" for an empty list.
  const auto keep = [arguments](const CLI::results_t& nodes) { return arguments->nodes = nodes, true; };
  command.add_option("NAME", keep, "nodes by name; put -- before names that begin with a dash")
      ->required()
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->allow_extra_args();
  command.add_option("-k", arguments->options.k, "neighbours a node [10]")->option_text("N");
  command.add_option("--metric", arguments->metric, "cosine | dot | l2 [cosine]")
      ->check(CLI::IsMember(&kMetrics))
      ->option_text("NAME");
  command.add_flag("--include-self", arguments->options.include_self, "let a node be among its own neighbours");
  command.add_flag("--json", arguments->json, "print one JSON object");
  command.add_option("--names", arguments->names_file, "names, one line a row; default: names.txt beside the array")
      ->option_text("FILE");
  command.callback([arguments, &common] {
    arguments->options.threads = common.thread_count();
    run(*arguments);
  });
}

}  // namespace gs::cli
