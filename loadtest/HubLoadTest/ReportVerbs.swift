// hub-loadtest compare and report: what files of results say.
import LoadTestKit

enum ReportVerbs {
  /// The first file against each other one, scenario by scenario. With one file: the two hubs in it. False where something
  /// got worse.
  static func compare(_ paths: [String]) throws(LoadTestError) -> Bool {
    guard let first = paths.first else { throw .usage("compare A.json B.json …, or one file with runs of two hubs") }
    let a = try Results(parsing: try readText(first), file: first)
    var pairs: [(a: [RunResult], b: [RunResult], names: (String, String))] = []
    if paths.count == 1 {
      let hubs = a.runs.map(\.hub).reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
      guard hubs.count == 2 else { throw .usage("\(first) has runs of \(hubs.count) hubs, not of two") }
      pairs.append((a.runs.filter { $0.hub == hubs[0] }, a.runs.filter { $0.hub == hubs[1] }, (hubs[0], hubs[1])))
    }
    for path in paths.dropFirst() {
      let b = try Results(parsing: try readText(path), file: path)
      pairs.append((a.runs, b.runs, (first, path)))
    }
    var (isGood, isCompared) = (true, false)
    for pair in pairs {
      let scenarios = pair.a.map(\.scenario).reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
      for scenario in scenarios {
        let b = pair.b.filter { $0.scenario == scenario }
        if b.isEmpty { continue }
        isCompared = true
        let comparison = Comparison(pair.a.filter { $0.scenario == scenario }, b, names: pair.names)
        show(comparison.text)
        isGood = isGood && !comparison.hasWorse
      }
    }
    guard isCompared else { throw .usage("the files have no scenario in common") }
    return isGood
  }

  /// One page with the plots of all files.
  static func report(_ words: [String]) throws(LoadTestError) -> Bool {
    var words = words
    guard let place = words.firstIndex(of: "--html"), place + 1 < words.count else {
      throw .usage("report A.json … --html FILE")
    }
    let output = words[place + 1]
    words.removeSubrange(place...(place + 1))
    guard !words.isEmpty else { throw .usage("report needs files of results") }
    var files: [(name: String, results: Results)] = []
    for path in words { files.append((path, try Results(parsing: try readText(path), file: path))) }
    try write(HTMLReport.page(files), to: output)
    show("written to \(output)")
    return true
  }
}
