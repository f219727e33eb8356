// hub-loadtest compare and report: what files of results say.
import HubCommandLine
import HubLoadTestKit

enum ReportVerbs {
  /// The first file against each other one, scenario by scenario. With one file: the two hubs in it. False where
  /// something got worse; what cannot be told is asked for wrongly.
  static func compare(_ paths: [String]) throws(LoadTestError) -> Bool {
    let options = try Arguments(paths, .compare)
    let comparison = try FileComparison(try files(options.operands))
    if !comparison.text.isEmpty { show(comparison.text) }
    if comparison.hasWorse { return false }
    guard comparison.failures.isEmpty else { throw .usage(comparison.failures.joined(separator: "; ")) }
    return true
  }

  private static func files(_ paths: [String]) throws(LoadTestError) -> [(name: String, results: Results)] {
    var files: [(name: String, results: Results)] = []
    do throws(LoadTestError) {
      for path in paths { files.append((path, try Results(parsing: try readText(path), file: path))) }
    } catch {
      // Not 1, which says of `compare` that something got worse.
      throw .usage("\(error)")
    }
    return files
  }

  /// One page with the plots of all files.
  static func report(_ words: [String]) throws(LoadTestError) -> Bool {
    let options = try Arguments(words, .report)
    guard let output = options.string("html") else { throw .usage("report A.json … --html FILE") }
    guard !options.operands.isEmpty else { throw .usage("report needs files of results") }
    let files = try files(options.operands)
    try write(HTMLReport.page(files), to: output)
    show("written to \(output)")
    return true
  }
}
