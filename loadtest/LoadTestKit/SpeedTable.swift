// The table of speeds, written from results alone: medians over the rounds, ratios within each round, the threshold
// beside each and whether it is met. A load of which a run does not count judges nothing.

package struct SpeedTable {
  private let results: Results

  package init(_ results: Results) { self.results = results }

  package var markdown: String {
    var parts = [
      "# What a message costs, held against its thresholds", "Written by `make figures`; none of it is typed by hand.",
      "    \(results.machine)",
    ]
    if rounds > 0 { parts.append(about) }
    parts.append(judged)
    if loads.count > SpeedTable.loadsHead.count {
      parts += ["## The loads", SpeedTable.loadsAbout, loads.joined(separator: "\n")]
    }
    if !highest.isEmpty { parts.append(highest) }
    return parts.joined(separator: "\n\n") + "\n"
  }

  private var about: String {
    """
    `serve --dev-auth --loops 1 --session-rate 0 --flush-interval 0`, without a journal, over loopback, a hub of its own \
    for each run; with pauses under load, as is the default, where nothing else is said. CPU is the hub's, in the window, \
    over what the hub counted within it; medians of \
    \(plural(rounds, "interleaved round")), ratios within each round. A run counts where everything that was expected was \
    delivered, nothing gave way to something newer, the load itself was not the limit, and p99 is at most 20 ms (50 ms in the \
    faster fan-out, 500 ms in the reconnect storm). Where 10,000 read the same message (wide fan-out and the cells) the last of \
    them waits for the writes to all others, and where memory is measured nothing is timed: p99 has no bound there. Fixes \
    come 0.3 % more slowly than said, or each tick of the kernel's clock, by which it splits user time from its own, would \
    meet the same place of a message's way. The thresholds against uWebSockets need it beside the hub in the same minutes and \
    are not judged here; what it took elsewhere is in brackets. Memory of a connection is what one more takes, of 10,000 \
    instead of 2,000: what the hub takes once for its first ones is not in it, as it is where all is divided by all of them.
    """
  }

  /// How many thresholds are missed: what is not judged is none of them.
  package var missed: Int { rows.count { $0.verdict == "**missed**" } }

  /// Whether no threshold is missed, no run broke what must hold, and of what there is to judge something could be.
  package var isGood: Bool {
    let judged = rows.filter { $0.threshold != nil && ($0.value != nil || !$0.doubts.isEmpty) }
    return missed == 0 && results.runs.allSatisfy(\.violations.isEmpty)
      && (judged.isEmpty || judged.contains(where: \.doubts.isEmpty))
  }

  // MARK: What is judged

  struct Row {
    var what: String
    /// What is judged; nil where there was no run.
    var value: Double?
    /// With its parts.
    var text: String
    var threshold: Double?
    var target: Double?
    var unit: (Double) -> String
    /// Why it doesn't count.
    var doubts: [String]

    var verdict: String {
      if let doubt = doubts.first { return "does not count: \(doubt)" }
      guard let value else { return "not measured" }
      let isTargetMet = target.map { value <= $0 }
      guard let threshold else { return isTargetMet.map { $0 ? "target met" : "target missed" } ?? "no threshold" }
      return value > threshold ? "**missed**" : isTargetMet == true ? "target met" : "met"
    }
  }

  private var judged: String {
    var lines = ["| | measured | threshold | target | |", "| --- | --- | --- | --- | --- |"]
    let shown = rows.filter { $0.value != nil || !$0.doubts.isEmpty }
    for row in shown {
      let bounds = [row.threshold, row.target].map { $0.map { "≤ " + row.unit($0) } ?? "" }
      lines.append(
        "| \(row.what) | \(row.value == nil ? "" : row.text) | \(bounds[0]) | \(bounds[1]) | \(row.verdict) |")
    }
    if shown.isEmpty { lines = [] }
    let missing = rows.count - shown.count
    if missing > 0, missing < rows.count { lines.append("") }
    if missing > 0 {
      lines.append("\(plural(missing, "row")) \(missing == 1 ? "is" : "are") left out, for their loads were not run.")
    }
    return lines.joined(separator: "\n")
  }

  var rows: [Row] { messages + latencies + sessions + ratios + once }

  private var messages: [Row] {
    [
      user(
        .unpacedTrip, "one fix in, one position out, 9,000/s: user part (uWebSockets 5.6 of 23.6 µs)", threshold: 4,
        target: 3),
      user(
        .unpacedFastTrip, "one fix in, one position out, 20,000/s: user part (5.0 of 21.1)", threshold: nil, target: nil
      ),
      user(.unpacedFullTrip, "one fix in, one position out, 45,000/s: user part", threshold: nil, target: nil),
      user(.fanOut, "a delivery in fan-out, 9,000/s: user part (0.7 of 11.3)", threshold: 0.7, target: 0.35),
      user(.fastFanOut, "a delivery in fan-out, 72,000/s: user part (0.7 of 9.0)", threshold: nil, target: nil),
    ]
  }

  private func user(_ load: SpeedLoad, _ what: String, threshold: Double?, target: Double?) -> Row {
    let (user, all) = (median(load, .userPerDelivery), median(load, .cpuPerDelivery))
    let values = runs(load.name).map { $0[.userPerDelivery] }
    let range = "\(micro(values.min() ?? 0)) to \(micro(values.max() ?? 0))"
    let tooShort = !values.isEmpty && (user ?? 0) == 0 ? ["too short for a tick in user space"] : []
    return Row(
      what: what, value: user, text: "\(micro(user ?? 0)) (\(range)) of \(micro(all ?? 0))", threshold: threshold,
      target: target,
      unit: micro, doubts: doubts(load) + tooShort)
  }

  private var latencies: [Row] {
    [
      latency("latency at 20,000/s without pauses: p50", .unpacedFastTrip, .latencyP50, threshold: nil, target: 35),
      latency("latency at 20,000/s without pauses: p99", .unpacedFastTrip, .latencyP99, threshold: 1000, target: 200),
      latency("p99 with pauses at 9,000/s", .trip, .latencyP99, threshold: 2500, target: 1500),
      latency("p99 with pauses at 20,000/s", .fastTrip, .latencyP99, threshold: 2500, target: 1500),
      latency(
        "p99 with pauses at 45,000/s, where it may be what it is without", .fullTrip, .latencyP99,
        threshold: median(.unpacedFullTrip, .latencyP99), target: nil),
      latency(
        "p50 of one driver at 1 Hz with pauses, which may be 10 µs more than without", .lone, .latencyP50,
        threshold: median(.unpacedLone, .latencyP50).map { $0 + 10 }, target: nil),
    ]
  }

  private func latency(_ what: String, _ load: SpeedLoad, _ figure: Figure, threshold: Double?, target: Double?) -> Row
  {
    let time = { (value: Double) in Figure.latencyP99.text(value) }
    let value = median(load, figure)
    return Row(
      what: what, value: value, text: time(value ?? 0), threshold: threshold, target: target, unit: time,
      doubts: doubts(load))
  }

  private var sessions: [Row] {
    let bytes = { (value: Double) in grouped(Int(value.rounded())) + " B" }
    func row(
      _ what: String, _ few: SpeedLoad, _ many: SpeedLoad, underLoad: Bool = false, threshold: Double, target: Double
    ) -> Row {
      func held(_ run: RunResult) -> Double { underLoad ? run.residentAtEnd : run[.residentBytes] }
      let value = paired(few, many) { few, many in
        let more = many[.connections] - few[.connections]
        return more > 0 ? (held(many) - held(few)) / more : nil
      }
      return Row(
        what: what, value: value, text: bytes(value ?? 0), threshold: threshold, target: target, unit: bytes,
        doubts: violations(few) + violations(many))
    }
    let accept = median(.idle, .cpuPerConnection)
    return [
      row("resident memory of each additional idle connection", .fewIdle, .idle, threshold: 200, target: 128),
      row(
        "resident memory of each additional rider who follows a trip", .fewRiders, .riders, threshold: 512,
        target: 256),
      row(
        "resident memory of each additional session, of drivers who send for a trip and their riders", .fewPairs,
        .pairs,
        underLoad: true,
        threshold: 1000, target: 600),
      Row(
        what: "accept and upgrade (24–35 µs)", value: accept, text: micro(accept ?? 0), threshold: 35, target: 24,
        unit: micro,
        doubts: violations(.idle)),
    ]
  }

  private var ratios: [Row] {
    [
      ratio("with pauses to without, 9,000/s", .trip, .unpacedTrip, .cpuPerDelivery, threshold: nil),
      ratio("with pauses to without, 20,000/s", .fastTrip, .unpacedFastTrip, .cpuPerDelivery, threshold: nil),
      ratio("with pauses to without, 45,000/s", .fullTrip, .unpacedFullTrip, .cpuPerDelivery, threshold: nil),
      ratio("with a journal, to without", .stored, .trip, .cpuPerDelivery, threshold: 1.3),
      ratio("two loops that share the hub, to one loop", .twoLoops, .trip, .cpuPerDelivery, threshold: 1.1),
      ratio(
        "TLS with pauses, to plain without, 1,000 sessions, 9,000/s", .tls, .plain, .cpuPerDelivery, threshold: 1.3),
      ratio("TLS with pauses, to plain without, 20,000/s", .fastTLS, .fastPlain, .cpuPerDelivery, threshold: 1.3),
      ratio("TLS with pauses, to plain without, 5,000/s", .slowTLS, .slowPlain, .cpuPerDelivery, threshold: 1.3),
      smallArea, area,
    ]
  }

  private func ratio(
    _ what: String, _ load: SpeedLoad, _ base: SpeedLoad, _ figure: Figure, threshold: Double?
  ) -> Row {
    let value = paired(base, load) { base, load in base[figure] > 0 ? load[figure] / base[figure] : nil }
    let text = "\(decimals(value ?? 0, 2)): \(micro(median(load, figure) ?? 0)) to \(micro(median(base, figure) ?? 0))"
    return Row(
      what: what, value: value, text: text, threshold: threshold, target: nil, unit: { decimals($0, 2) },
      doubts: doubts(load) + doubts(base))
  }

  /// An update of as many bytes as a position has.
  private var smallArea: Row {
    let value = paired(.wideFanOut, .smallArea) { fanOut, area in
      fanOut[.cpuPerDelivery] > 0 ? area[.cpuPerAreaUpdate] / fanOut[.cpuPerDelivery] : nil
    }
    return Row(
      what: "an update of a cell with one driver, to a position in fan-out, 10,000 riders each", value: value,
      text: "\(decimals(value ?? 0, 2)): \(micro(median(.smallArea, .cpuPerAreaUpdate) ?? 0)) for "
        + "\(bytes(.smallArea, .bytesOutPerAreaUpdate)) to \(micro(median(.wideFanOut, .cpuPerDelivery) ?? 0)) for "
        + bytes(.wideFanOut, .bytesOutPerDelivery),
      threshold: 1.1, target: nil, unit: { decimals($0, 2) }, doubts: doubts(.smallArea) + doubts(.wideFanOut))
  }

  /// No position has as many bytes as a cell with a hundred drivers. Both are encoded once and written by one call for
  /// each rider, so what the kernel takes for such a write is counted as equal, and the user parts are compared.
  private var area: Row {
    let value = paired(.wideFanOut, .area) { fanOut, area in
      guard let kernel = area.figures[.systemPerAreaUpdate], let user = fanOut.figures[.userPerDelivery] else {
        return nil
      }
      let other = user + kernel
      return other > 0 ? (area[.userPerAreaUpdate] + kernel) / other : nil
    }
    return Row(
      what:
        "an update of a cell with 100 drivers, to a position in fan-out, the kernel's part counted as equal",
      value: value,
      text: "\(decimals(value ?? 0, 2)): \(micro(median(.area, .cpuPerAreaUpdate) ?? 0)) for "
        + "\(bytes(.area, .bytesOutPerAreaUpdate)), user \(micro(median(.area, .userPerAreaUpdate) ?? 0)) to "
        + micro(median(.wideFanOut, .userPerDelivery) ?? 0),
      threshold: 1.1, target: nil, unit: { decimals($0, 2) }, doubts: doubts(.area) + doubts(.wideFanOut))
  }

  private var once: [Row] {
    let time = { (value: Double) in Figure.latencyP99.text(value) }
    let size = { (value: Double) in decimals(value / 1_048_576, 1) + " MiB" }
    func row(
      _ what: String, _ run: String, _ figure: Figure, threshold: Double?, target: Double? = nil,
      _ unit: @escaping (Double) -> String
    ) -> Row {
      let value = median(run, figure)
      return Row(
        what: what, value: value, text: unit(value ?? 0), threshold: threshold, target: target, unit: unit,
        doubts: doubts(run))
    }
    return [
      row("p99 at a fifth of the highest rate", SpeedRun.fifth, .latencyP99, threshold: 5000, time),
      row(
        "reconnect storm of 10,000: until the last has subscribed", SpeedLoad.storm.name, .joinMax, threshold: 5e6, time
      ),
      row(
        "reconnect storm of 10,000: p99 of those who stayed", SpeedLoad.storm.name, .latencyP99, threshold: 500_000,
        time),
      row("start to listening", StartRun.name, .startTime, threshold: 50_000, time),
      row(
        "resident before the first connection", StartRun.name, .startBytes, threshold: nil, target: 10 * 1_048_576, size
      ),
      row(
        "resident before the first connection, the process's own", StartRun.name, .startOwnBytes, threshold: nil, size),
      row("the executable", StartRun.name, .executableBytes, threshold: nil, size),
    ]
  }

  // MARK: The loads

  private static let loadsHead = [
    "| load | runs that count | µs | user | kernel | p50 | p99 | messages a read | bytes out |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
  ]

  private static let loadsAbout =
    "µs is all of the hub's CPU over positions sent (over updates sent, of a cell); user and kernel are its two parts, each "
    + "a median by itself."

  private var loads: [String] {
    var lines = SpeedTable.loadsHead
    for load in SpeedLoad.all where !load.isBrief {
      let runs = runs(load.name)
      guard let first = runs.first else { continue }
      let isArea = first[.cpuPerAreaUpdate] > 0
      let cost: [Figure] =
        isArea
        ? [.cpuPerAreaUpdate, .userPerAreaUpdate, .systemPerAreaUpdate]
        : [.cpuPerDelivery, .userPerDelivery, .systemPerDelivery]
      let latency: [Figure] = isArea ? [.spreadP50, .spreadP99] : [.latencyP50, .latencyP99]
      let cells =
        ["\(load.name): \(load.scenario.about)", "\(runs.count(where: \.isGood)) of \(runs.count)"]
        + cost.map { median(load, $0).map(micro) ?? "" }
        + latency.map { figure in median(load, figure).map(figure.text) ?? "" }
        + [
          decimals(median(load, .fixesPerRead) ?? 0, 2),
          bytes(load, isArea ? .bytesOutPerAreaUpdate : .bytesOutPerDelivery),
        ]
      lines.append("| " + cells.joined(separator: " | ") + " |")
    }
    return lines
  }

  private var highest: String {
    guard let bound = results.bound else { return "" }
    return "The highest rate of trips: \(RateSearch.verdict(results.steps, bound: bound))."
  }

  // MARK: Figures

  private var rounds: Int { SpeedLoad.all.map { runs($0.name).count }.max() ?? 0 }

  private func runs(_ name: String) -> [RunResult] { results.runs.filter { $0.scenario == name } }

  private func median(_ load: SpeedLoad, _ figure: Figure) -> Double? { median(load.name, figure) }

  private func median(_ name: String, _ figure: Figure) -> Double? {
    let values = runs(name).compactMap { $0.figures[figure] }
    return values.isEmpty ? nil : RankTest.median(values)
  }

  /// The median of what each round gives for two loads.
  private func paired(_ a: SpeedLoad, _ b: SpeedLoad, _ value: (RunResult, RunResult) -> Double?) -> Double? {
    let values = zip(runs(a.name), runs(b.name)).compactMap(value)
    return values.isEmpty ? nil : RankTest.median(values)
  }

  private func doubts(_ load: SpeedLoad) -> [String] { doubts(load.name) }

  /// The objection to the first run that does not count.
  private func doubts(_ name: String) -> [String] { runs(name).flatMap { $0.violations + $0.invalid } }

  /// Of brief runs: they measure no time of which the load could have taken a part.
  private func violations(_ load: SpeedLoad) -> [String] { runs(load.name).flatMap(\.violations) }

  private func micro(_ value: Double) -> String { decimals(value, value < 10 ? 2 : 1) + " µs" }

  private func bytes(_ load: SpeedLoad, _ figure: Figure) -> String {
    grouped(Int((median(load, figure) ?? 0).rounded())) + " B"
  }
}
