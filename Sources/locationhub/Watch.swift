// `watch`: prints what is published on channels.
//
// By ClientLoop and not by RiderHub, whose feeds are of trips and areas and give a slow reader only the newest
// position: here any channel is shown, with every message, and as JSON the hub's own bytes.
import Glibc
import HubBytes
import HubClientLoop
import HubCommandLine
import HubGeo
import HubMessages
import HubSimulation
import HubSystem
import HubTransport

let watch = Verb(
  name: "watch", operands: "CHANNEL [more…]",
  summary: """
    Prints what is published on channels of a hub.
    Channels: trip:<id>, driver:<id>, fence:<id>, fleet, area:<geohash>, nearby:<latitude>,<longitude>,<metres>.
    As csv only positions, one row each: \(TraceFile.rowHeader). As json the hub's messages as they came.
    Ends by SIGINT, SIGTERM, --count, --duration, with the last channel, or when the reader of its output has gone.
    """,
  options: ClientOptions.options + [
    Option("format", "FORMAT", "text, json or csv (text)"),
    Option("role", "ROLE", "rider, ops or driver, with development credentials (rider for trips and areas, else ops)"),
    Option("id", "ID", "who asks, with development credentials (watch)"),
    Option("count", "N", "end after so many lines, not counting answers to the subscriptions"),
    Option("duration", "SECONDS", "end after so long"),
  ],
  run: runWatch)

private func runWatch(_ arguments: Arguments) throws(CommandError) -> ExitCode {
  let options = try ClientOptions(arguments)
  let channels = try channels(arguments.operands)
  let format = try arguments.value("format", .choice(WatchFormat.allCases.map { ($0.rawValue, $0) })) ?? .text
  let role = try arguments.value("role", .choice(Role.allCases.map { ("\($0.name)", $0) }))
  let usualRole: Role = channels.allSatisfy(\.isForRiders) ? .rider : .ops
  let configuration = try options.configuration(
    role ?? usualRole, try arguments.identifier("id") ?? WatchFormat.defaultID)
  let count = try arguments.value("count", .whole(1...Int.max))
  let duration = try arguments.value("duration", .number(0...1e9))
  try system { () throws(SystemError) in try blockSignals([SIGINT, SIGTERM, SIGPIPE]) }
  let clients = try options.makeLoop()
  let watcher = Watcher(clients, options: options, format: format, count: count)
  try clients.stopAtSignals()
  return try watcher.run(configuration, channels, seconds: duration)
}

extension Channel {
  /// Whether a rider may follow it without a token that names it.
  fileprivate var isForRiders: Bool {
    switch self {
    case .trip, .area, .nearby: true
    case .driver, .fence, .box, .counts, .countsBlock, .fleet, .trips, .raw, .stats: false
    }
  }
}

private func channels(_ names: [String]) throws(CommandError) -> [Channel] {
  guard !names.isEmpty else { throw .usage("watch needs a channel, for instance trip:T1 or fleet") }
  var channels: [Channel] = []
  for name in names {
    guard let channel = Channel(name) else {
      throw .usage(
        "\(name) is no channel: use trip:<id>, driver:<id>, fence:<id>, raw:<id>, fleet, trips, area:<geohash>, "
          + "nearby:<latitude>,<longitude>,<metres> box: or counts:<west>,<south>,<east>,<north>"
      )
    }
    channels.append(channel)
  }
  return channels
}

enum WatchFormat: String, CaseIterable {
  case text, json, csv

  static let defaultID: Identifier = {
    guard let id = Identifier("watch") else { preconditionFailure("it has only allowed characters") }
    return id
  }()
}

/// A client that prints.
private final class Watcher: ClientLoopDelegate {
  private let clients: ClientLoop
  private let options: ClientOptions
  private let format: WatchFormat
  private var left: Int?
  private var hasEnded = false
  private var report: ConnectionReport
  private var failure: CommandError?
  private var endsAt: Int64?
  /// The text of the present message, for `json`.
  private var text = ByteBuffer()
  private var line = ByteBuffer()
  private var subscriptions = 0

  init(_ clients: ClientLoop, options: ClientOptions, format: WatchFormat, count: Int?) {
    self.clients = clients
    self.options = options
    self.format = format
    left = count
    report = ConnectionReport(timeoutSeconds: options.connectTimeout, now: clients.now.uptime)
    clients.delegate = self
  }

  func run(
    _ configuration: ClientConfiguration, _ channels: [Channel], seconds: Double?
  ) throws(CommandError) -> ExitCode {
    subscriptions = channels.count
    endsAt = seconds.map { clients.now.uptime + Int64($0 * 1e9) }
    let client = clients.add(configuration)
    for channel in channels { clients.subscribe(client, to: channel) }
    if format == .csv { write(TraceFile.rowHeader) }
    tick()
    clients.run()
    hasEnded = true
    finish(clients)
    if let failure = failure ?? report.neverConnected(options.url) { throw failure }
    return .ok
  }

  func end(_ failure: CommandError? = nil) {
    self.failure = self.failure ?? failure
    hasEnded = true
    clients.stop()
  }

  // MARK: What happens

  func opened(_ client: ClientID, _ connected: Connected) { report.opened(options.url) }

  func closed(_ client: ClientID, _ disconnection: Disconnection) {
    if let failure = report.closed(disconnection, options.url, now: clients.now.uptime) { end(failure) }
  }

  func tick() {
    let now = clients.now.uptime
    if let failure = report.check(now: now, options.url) { return end(failure) }
    if let endsAt, now >= endsAt { return end() }
    clients.scheduleTick(at: min(now + 250_000_000, endsAt ?? .max))
  }

  /// JSON is printed as received.
  func receivedRaw(_ client: ClientID, _ message: UnsafeRawBufferPointer) -> Bool {
    guard format == .json, clients.session(client).form != .binary else { return false }
    text.removeAll()
    unsafe text.append(message)
    return false
  }

  /// Messages that were read together with the last requested line are not printed.
  func received(_ client: ClientID, _ envelope: borrowing ServerEnvelope) {
    if hasEnded { return }
    if format == .json, clients.session(client).form == .binary { writeText(envelope) }
    switch envelope.message {
    case .publication(let publication): print(publication)
    case .reply(let reply): print(reply)
    case .unknown: if format == .json { printText() }
    }
  }

  // MARK: Printing

  /// A binary message as JSON.
  private func writeText(_ envelope: borrowing ServerEnvelope) {
    text.removeAll()
    switch envelope.message {
    case .publication(let publication): JSONWriter.write(publication, time: options.url.time, into: &text)
    case .reply(let reply):
      JSONWriter.write(
        reply, timestamp: envelope.timestamp, messageID: envelope.messageID.trailingNumber, time: options.url.time,
        into: &text)
    case .unknown: break
    }
  }

  private func print(_ publication: Publication) {
    switch format {
    case .json: printText()
    case .text: write(WatchText.line(publication))
    case .csv:
      guard case .driverLocation(let location) = publication.body else { return }
      write(
        TraceFile.row(
          timestamp: location.timestamp, coordinate: location.coordinate, speed: location.speed,
          heading: location.heading))
    }
    countLine()
  }

  /// Prints a reply that the format shows; errors and ends of subscriptions also go to standard error.
  private func print(_ reply: Reply) {
    switch reply {
    case .connected, .ack, .pong, .sampling, .result: return
    case .subscribed(let answer):
      if format == .text { write(WatchText.line(answer)) }
    case .unsubscribed(let answer):
      ConnectionReport.say("\(answer.channel): unsubscribed (\(answer.reason?.name ?? "for a reason of a newer hub"))")
      leave()
    case .error(let error):
      ConnectionReport.say("the hub says \(error.code.name): \(error.message)")
      // The client asks again by itself.
      let retry = error.code.facts.retry
      if retry != .later, retry != .once {
        failure = failure ?? .failed("the hub refused a subscription")
        leave()
      }
    }
    if format == .json { printText() }
  }

  /// A channel has ended; after the last one the program ends.
  private func leave() {
    subscriptions -= 1
    if subscriptions <= 0 { end() }
  }

  private func printText() {
    text.append(UInt8(ascii: "\n"))
    if unsafe !text.withBytes({ unsafe StandardStream.output.write($0) }) { end() }
  }

  private func write(_ text: String) {
    line.removeAll()
    line.append(utf8: text.withoutControls)
    line.append(UInt8(ascii: "\n"))
    // A reader that closes the pipe, such as `head`, ends the program without an error.
    if unsafe !line.withBytes({ unsafe StandardStream.output.write($0) }) { end() }
  }

  private func countLine() {
    guard let count = left else { return }
    left = count - 1
    if count <= 1 { end() }
  }
}

/// Messages as a line for a person.
enum WatchText {
  static func line(_ publication: Publication) -> String {
    let head = "\(time(publication.timestamp))  \(publication.channel)  "
    switch publication.body {
    case .driverLocation(let location): return head + text(location)
    case .etaUpdate(let update): return head + text(update)
    case .tripUpdate(let update): return head + text(update)
    case .notification(let notification): return head + "\(notification.title): \(notification.body)"
    case .offer(let offer): return head + text(offer)
    case .areaUpdate(let update): return head + text(update)
    case .rawFix(let fix): return head + text(fix)
    case .countsUpdate(let update): return head + text(update)
    case .stats(let figures): return head + figures.members
    }
  }

  private static func text(_ offer: Offer) -> String {
    switch offer.state {
    case .made(let terms): "offer of trip \(offer.tripID): \(fixed(terms.distance, 0)) m, \(fixed(terms.eta, 0)) s"
    case .withdrawn(let reason): "offer of trip \(offer.tripID) withdrawn: \(reason.name)"
    }
  }

  private static func text(_ update: TripUpdate) -> String {
    let from = update.previousStatus.map { "\($0.name) → " } ?? ""
    var text = "trip \(update.tripID): \(from)\(update.status.name)"
    if let driver = update.driverID { text += ", driver \(driver)" }
    for (name, place) in [("pickup", update.pickup), ("dropoff", update.dropoff)] {
      if let place { text += "; new \(name) \(fixed(place.latitude, 5)), \(fixed(place.longitude, 5))" }
    }
    if update.route != nil { text += "; new route" }
    if let summary = update.summary { text += "; " + Self.text(summary) }
    return text
  }

  private static func text(_ fix: RawFix) -> String {
    var text = "\(fix.verdict.name)  \(fixed(fix.coordinate.latitude, 6)), \(fixed(fix.coordinate.longitude, 6))"
    if let accuracy = fix.accuracy { text += "  ±\(fixed(accuracy, 0)) m" }
    if let offset = fix.offset { text += "  \(fixed(offset, 1)) m from where it is shown" }
    if let reason = fix.reason { text += "  \(reason.name)" }
    return text
  }

  private static func text(_ update: CountsUpdate) -> String {
    "tick \(update.tick)\(update.isFull ? ", all" : ""): "
      + update.cells.map {
        "\($0.cell) \($0.available) available, \($0.onTrip) on trip, \($0.unavailable) unavailable, "
          + "\($0.background) in the background, \($0.offline) offline"
      }.joined(separator: "; ")
  }

  private static func text(_ update: AreaUpdate) -> String {
    var text = "tick \(update.tick)\(update.isFull ? ", all" : ""): "
    text += update.drivers.map {
      "\($0.driverID) \(fixed($0.coordinate.latitude, 5)), \(fixed($0.coordinate.longitude, 5))"
    }.joined(separator: "; ")
    if !update.left.isEmpty { text += "  left: " + update.left.map { "\($0)" }.joined(separator: ", ") }
    if let more = update.more { text += "  and \(more) more" }
    return text
  }

  static func line(_ answer: Subscribed) -> String {
    var text = "subscribed to \(answer.channel), event \(answer.sequence)"
    if let trip = answer.snapshot?.trip { text += ", trip \(trip.status.name)" }
    if let position = answer.snapshot?.position { text += ", " + Self.text(position) }
    if let eta = answer.snapshot?.eta { text += ", " + Self.text(eta) }
    return text
  }

  private static func text(_ update: ETAUpdate) -> String {
    "trip \(update.tripID): \(update.target.name) in \(minutes(update.eta)), \(kilometers(update.distance)), at "
      + "\(time(update.arrivalTime)) (\(update.basis.name))"
  }

  /// Minutes and seconds, rounded down; in seconds where they are too many for an integer.
  private static func minutes(_ duration: Double) -> String {
    guard let seconds = Int64(exactly: duration.rounded(.down)) else { return "\(duration) s" }
    return "\(seconds / 60):" + (seconds % 60 < 10 ? "0" : "") + "\(seconds % 60) min"
  }

  private static func text(_ summary: TripSummary) -> String {
    "\(kilometers(summary.distance)) in \(fixed(summary.duration / 60, 1)) min, after \(kilometers(summary.approach)); "
      + "waited \(fixed(summary.waiting, 0)) s, \(summary.fixes) fixes, \(summary.gaps) gaps"
  }

  private static func kilometers(_ meters: Double) -> String { "\(fixed(meters / 1000, 2)) km" }

  private static func text(_ location: DriverLocation) -> String {
    var text =
      "\(location.driverID)  \(fixed(location.coordinate.latitude, 6)), \(fixed(location.coordinate.longitude, 6))"
    if let speed = location.speed { text += "  \(fixed(speed, 1)) m/s" }
    if let heading = location.heading { text += "  \(fixed(heading, 0))°" }
    return text + "  ±\(fixed(location.accuracy, 0)) m  age \(fixed(location.age, 3)) s"
  }

  /// The time of day, UTC.
  private static func time(_ timestamp: Timestamp) -> String {
    var buffer = ByteBuffer()
    buffer.append(rfc3339: timestamp)
    return unsafe buffer.withBytes { unsafe String(decoding: $0.dropFirst(11), as: UTF8.self) }
  }
}

extension MessageID {
  /// The number in an id of the hub's (`r7`).
  fileprivate var trailingNumber: UInt64 { UInt64(description.drop { !$0.isNumber }) ?? 0 }
}
