// Results as JSON, and back.
import HubBytes
import HubCommandLine

extension RunResult {
  var json: JSONText {
    .record([
      ("scenario", .text(scenario)), ("about", .text(about)), ("valid", .flag(isValid)),
      ("invalid", .list(invalid.map(JSONText.text))), ("violations", .list(violations.map(JSONText.text))),
      ("hub", .text(hub)), ("startedAt", .number(startedAt)), ("settings", .list(settings.map(JSONText.text))),
      (
        "figures",
        .record(Figure.allCases.compactMap { figure in figures[figure].map { (figure.rawValue, .number($0)) } })
      ),
      // [second, delivered a second, p50, p99, maximum]
      ("parts", .list(parts.map { .row([$0.second, $0.delivered, $0.p50, $0.p99, $0.maximum]) })),
      // [µs, count]
      ("buckets", .list(buckets.map { .row([$0.microseconds, $0.count]) })),
    ])
  }

  /// Nil where it is none.
  init?(_ json: JSONValue) {
    guard let members = json.members, let scenario = members["scenario"]?.string, let hub = members["hub"]?.string,
      let startedAt = members["startedAt"]?.number, let figures = members["figures"]?.members,
      let parts = Results.rows(members["parts"], 5), let buckets = Results.rows(members["buckets"], 2),
      let invalid = Results.texts(members["invalid"]), let violations = Results.texts(members["violations"])
    else { return nil }
    var known: [Figure: Double] = [:]
    for (name, value) in figures {
      // A newer release may have figures that this one doesn't know.
      guard let figure = Figure(rawValue: name) else { continue }
      guard let number = value.figure else { return nil }
      known[figure] = number
    }
    self.init(
      scenario: scenario, about: members["about"]?.string ?? "", settings: Results.texts(members["settings"]) ?? [],
      hub: hub, startedAt: startedAt, figures: known,
      parts: parts.map { Part(second: $0[0], delivered: $0[1], p50: $0[2], p99: $0[3], maximum: $0[4]) },
      buckets: buckets.map { Bucket(microseconds: $0[0], count: $0[1]) }, invalid: invalid, violations: violations)
  }
}

extension JSONValue {
  /// The largest number that is a figure: a whole number of that size is shown in full.
  private static let largestFigure = 1e15

  /// A number that a figure can be.
  var figure: Double? { number.flatMap { abs($0) <= JSONValue.largestFigure ? $0 : nil } }
}

extension Results {
  /// Of the form; a reader refuses another.
  static let format = 1.0

  package var json: String {
    var members: [(String, JSONText)] = [
      ("format", .number(Results.format)), ("machine", .text(machine)), ("runs", .list(runs.map(\.json))),
    ]
    if !steps.isEmpty {
      // [fixes a second, deliveries a second, p99, hub's cores, valid, kept, offered fixes a second of each driver]
      let rows = steps.map { step in
        JSONText.row([
          step.fixesPerSecond, step.deliveriesPerSecond, step.p99, step.hubCores, step.isValid ? 1 : 0,
          step.isKept ? 1 : 0, step.offered,
        ])
      }
      members.append(("steps", .list(rows)))
    }
    if let kind { members.append(("kind", .text(kind))) }
    if let bound { members.append(("bound", .number(bound))) }
    return JSONText.record(members).text
  }

  /// Reads a file of results.
  package init(parsing text: String, file: String) throws(LoadTestError) {
    guard let members = JSONValue(parsing: text.utf8)?.members else { throw .failed("\(file) is no JSON") }
    guard members["format"]?.number == Results.format else {
      throw .failed("\(file) is no result of this load test's format \(Int(Results.format))")
    }
    guard let machine = members["machine"]?.string, let runs = members["runs"]?.elements else {
      throw .failed("\(file) has no runs")
    }
    self.init(machine: machine, runs: [])
    for (index, run) in runs.enumerated() {
      guard let result = RunResult(run) else {
        throw .failed("\(file): run \(index + 1) lacks something, or has a figure of over 10^15")
      }
      self.runs.append(result)
    }
    // Older files have no offered rate; what came in stands for it there.
    let steps = members["steps"] ?? .array([])
    guard let rows = Results.rows(steps, 7) ?? Results.rows(steps, 6) else { throw .failed("\(file): bad steps") }
    self.steps = rows.map {
      RateStep(
        offered: $0.count > 6 ? $0[6] : $0[0], fixesPerSecond: $0[0], deliveriesPerSecond: $0[1], p99: $0[2],
        hubCores: $0[3], isValid: $0[4] == 1, isKept: $0[5] == 1)
    }
    bound = members["bound"]?.number
    kind = members["kind"]?.string
  }

  static func rows(_ json: JSONValue?, _ count: Int) -> [[Double]]? {
    guard let elements = json?.elements else { return nil }
    var rows: [[Double]] = []
    for element in elements {
      guard let row = element.elements?.compactMap(\.figure), row.count == count else { return nil }
      rows.append(row)
    }
    return rows
  }

  static func texts(_ json: JSONValue?) -> [String]? {
    guard let elements = json?.elements else { return nil }
    let texts = elements.compactMap(\.string)
    return texts.count == elements.count ? texts : nil
  }
}
