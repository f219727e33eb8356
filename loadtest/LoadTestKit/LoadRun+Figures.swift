// The results of a run: its figures, and the objections to it.
import HubBytes
import HubTransport

extension LoadRun {
  func read(
    _ address: SocketAddress, _ facts: ProcessReadings?, _ sampler: ModeSampler?, _ tls: ServerTrust?
  ) -> Reading {
    // CPU first: the page costs the hub some.
    var cpu = facts?.cpu
    if let sampler {
      sampler.collect()
      cpu?.split(sampler)
    }
    return Reading(cpu: cpu, page: MetricsPage.fetch(address, tls: tls))
  }

  static func seconds(from: ProcessorTime?, to: ProcessorTime?) -> ProcessorTime? {
    guard let from, let to else { return nil }
    return to.since(from)
  }

  func put(_ counts: Counts, into figures: inout [Figure: Double]) {
    for (figure, value) in [
      (Figure.sent, counts.sent), (.expected, counts.expected), (.delivered, counts.delivered),
      (.duplicated, counts.duplicated), (.outOfOrder, counts.outOfOrder), (.errors, counts.errors),
      (.requests, counts.requests), (.acknowledged, counts.acknowledged), (.events, counts.events),
      (.eventsLost, counts.eventsLost), (.eventsDuplicated, counts.eventsDuplicated), (.joined, counts.joined),
      (.recovered, counts.recovered), (.slowDelivered, counts.slowDelivered), (.extra, counts.extra),
      (.areaUpdates, counts.areaUpdates), (.areaSnapshots, counts.areaSnapshots),
    ] { figures[figure] = Double(value) }
    if scenario.maximumSessions > scenario.sessions { figures[.mostConnections] = Double(scenario.maximumSessions) }
    figures[.harnessCores] = counts.cpuShare
    put(counts.latency, [.latencyP50, .latencyP90, .latencyP99, .latencyP999], .latencyMax, into: &figures)
    put(counts.connects, [.connectP50, .connectP90, .connectP99], .connectMax, into: &figures)
    put(counts.joins, [.joinP50, .joinP90, .joinP99], .joinMax, into: &figures)
    put(counts.acks, [.ackP50, .ackP90, .ackP99], .ackMax, into: &figures)
    put(counts.spread, [.spreadP50, .spreadP90, .spreadP99], .spreadMax, into: &figures)
    put(counts.lateness, [nil, nil, .latenessP99], nil, into: &figures)
    // What a hub takes by itself for its first sessions is most of what a few hundred take.
    if scenario.sessions < LoadRun.fewestForMemory { figures[.bytesPerConnection] = nil }
    if scenario.maximumSessions < LoadRun.fewestForMemory { figures[.bytesUnderLoad] = nil }
  }

  /// Sessions below which memory is not reported for each.
  static let fewestForMemory = 1000

  /// Percentiles 50, 90, 99 and 99.9, as far as there are names for them and values enough: p99 of fewer than a hundred
  /// is the maximum, called by another name.
  private func put(
    _ histogram: LatencyHistogram, _ names: [Figure?], _ maximum: Figure?, into figures: inout [Figure: Double]
  ) {
    guard histogram.count > 0 else { return }
    for (name, (quantile, fewest)) in zip(names, [(0.5, 1), (0.9, 10), (0.99, 100), (0.999, 1000)]) {
      if let name, histogram.count >= fewest { figures[name] = Double(histogram.value(atQuantile: quantile)) }
    }
    if let maximum { figures[maximum] = Double(histogram.maximum) }
  }

  /// How much of the hub's CPU time was in user space and in the kernel; nil where too few of the clock's ticks met it
  /// to tell (50 of 250 a second are known to 14 %), and nothing sampled it.
  private func split(
    _ cpu: ProcessorTime?, _ figures: [Figure: Double]
  ) -> (user: Double, system: Double)? {
    guard let cpu, figures[.userSamples] != nil || cpu.all >= LoadRun.minimumToSplit else { return nil }
    return (cpu.user, cpu.system)
  }

  /// Seconds of CPU: 50 ticks.
  static let minimumToSplit = 0.2

  /// What the hub used and counted between two readings.
  func put(_ begin: Reading, _ end: Reading, into figures: inout [Figure: Double]) {
    let seconds = Double(end.at - begin.at) / 1e9
    let cpu = LoadRun.seconds(from: begin.cpu, to: end.cpu)
    if let cpu { figures[.hubCores] = cpu.all / seconds }
    guard let first = begin.page, let last = end.page else { return }
    let difference = { (name: String) in last(name) - first(name) }
    let fixes = difference("fixes_received_total")
    let positions = max(0, last.positionsSent - first.positionsSent)
    figures[.fixesPerSecond] = fixes / seconds
    figures[.deliveriesPerSecond] = positions / seconds
    if fixes > 0 {
      if let cpu { figures[.cpuPerFix] = cpu.all * 1e6 / fixes }
      figures[.bytesInPerFix] = difference("read_bytes_total") / fixes
      figures[.fixesPerRead] = difference("messages_in_total") / max(1, difference("reads_total"))
    }
    if positions > 0 {
      if let cpu {
        figures[.cpuPerDelivery] = cpu.all * 1e6 / positions
        if let split = split(cpu, figures) {
          figures[.userPerDelivery] = split.user * 1e6 / positions
          figures[.systemPerDelivery] = split.system * 1e6 / positions
        }
      }
      figures[.bytesOutPerDelivery] = difference("written_bytes_total") / positions
    }
    figures[.writesPerSecond] = difference("writes_total") / seconds
    putAreas(difference, cpu, seconds, into: &figures)
    let groups = difference("journal_groups_total")
    if groups > 0 {
      figures[.journalGroups] = groups
      figures[.journalBytes] = difference("journal_bytes_total") / groups
      figures[.journalBusyShare] = difference("journal_busy_seconds_total") / seconds
    }
  }

  private func putAreas(
    _ difference: (String) -> Double, _ cpu: ProcessorTime?, _ seconds: Double, into figures: inout [Figure: Double]
  ) {
    let updates = difference("area_updates_out_total") + difference("area_snapshots_out_total")
    guard updates > 0 else { return }
    figures[.areaUpdatesPerSecond] = updates / seconds
    figures[.bytesOutPerAreaUpdate] = difference("written_bytes_total") / updates
    guard let cpu else { return }
    figures[.cpuPerAreaUpdate] = cpu.all * 1e6 / updates
    guard let split = split(cpu, figures) else { return }
    figures[.userPerAreaUpdate] = split.user * 1e6 / updates
    figures[.systemPerAreaUpdate] = split.system * 1e6 / updates
  }

  // MARK: Judgement

  /// Why this program was the bottleneck.
  func faults(_ counts: Counts) -> [String] {
    var faults: [String] = []
    if counts.cpuShare > options.busyBound {
      faults.append(
        "a thread of the load was busy \(decimals(counts.cpuShare * 100, 0)) % of its time: more than "
          + "\(decimals(options.busyBound * 100, 0)) % (--threads N, or fewer sessions)")
    }
    let lateness = Double(counts.lateness.value(atQuantile: 0.99))
    if lateness > options.latenessBoundMicroseconds {
      faults.append(
        "the load was late by itself: p99 \(Figure.latenessP99.text(lateness)), more than "
          + "\(Figure.latenessP99.text(options.latenessBoundMicroseconds)) (other work on the machine?)")
    }
    return faults
  }

  /// What must not be, whatever the load.
  func violations(_ counts: Counts, _ figures: [Figure: Double]) -> [String] {
    var violations: [String] = []
    let mustBeZero: [Figure] = [.lost, .duplicated, .outOfOrder, .eventsLost, .eventsDuplicated]
    for figure in mustBeZero {
      if let value = figures[figure], value > 0 { violations.append("\(figure.title): \(grouped(Int(value)))") }
    }
    if counts.errors > 0 {
      violations.append("\(grouped(counts.errors)) errors, the first: \(counts.firstError ?? "unknown")")
    }
    if counts.acknowledged < counts.requests {
      violations.append("\(grouped(counts.requests - counts.acknowledged)) batches or moves without an ack")
    }
    if counts.joined < counts.joinsDue {
      violations.append("only \(grouped(counts.joined)) of \(grouped(counts.joinsDue)) came (again)")
    }
    // The hub counts once who does not take its updates for several seconds, so how many it left out is not known.
    if counts.areaUpdatesMissing > 0, (figures[.areasSkipped] ?? 0) == 0 {
      violations.append(
        "\(grouped(counts.areaUpdatesMissing)) updates of the cell missing, of \(grouped(scenario.fewestUpdates)) that each watcher gets "
          + "at least")
    }
    return violations
  }
}
