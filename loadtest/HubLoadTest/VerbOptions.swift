// --name VALUE, behind a verb.
import LoadTestKit

/// The options of a verb that measures, each with a value.
struct VerbOptions {
  private var values: [String: String] = [:]

  init(_ words: [String], _ known: Set<String>) throws(LoadTestError) {
    var words = words[...]
    while let word = words.popFirst() {
      guard known.contains(word) else { throw .usage("there is no option \(word) here") }
      guard let value = words.popFirst() else { throw .usage("\(word) needs a value") }
      values[word] = value
    }
  }

  subscript(_ name: String) -> String? { values[name] }

  func number(_ name: String, or other: Double) throws(LoadTestError) -> Double {
    guard let text = values[name] else { return other }
    guard let value = Double(text), value > 0, value < 1e6 else { throw .usage("\(name) must be a positive number") }
    return value
  }

  func whole(_ name: String, or other: Int) throws(LoadTestError) -> Int {
    guard let text = values[name] else { return other }
    guard let value = Int(text), (1...1000).contains(value) else {
      throw .usage("\(name) must be a whole number from 1 to 1000")
    }
    return value
  }

  /// How the hub is run.
  func run() throws(LoadTestError) -> RunOptions {
    var run = RunOptions(executable: values["--executable"] ?? Machine.hubBesides())
    run.serverCPU = values["--server-cpu"]
    if values["--threads"] != nil { run.threads = try whole("--threads", or: 1) }
    return run
  }
}
