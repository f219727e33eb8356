// The thread of webhooks and streams with a journal on the disk, a network without a kernel, and clocks that are moved
// by hand.
import Foundation
import HubBytes
import HubMessages
import HubRuntime
import HubSystem
import HubTransportSupport
import Synchronization
import Testing

@testable import HubCore
@testable import HubJournal
@testable import HubTransport
@testable import HubWebhooks

/// The thread's loop with a journal on the disk.
final class LoopScene {
  let network = SimulatedNetwork()
  let control = WebhookControl()
  let directory = "/tmp/webhooks-\(UUID().uuidString)"
  private var reading = ClockReading(uptimeNanoseconds: 1_000_000_000_000, unixMilliseconds: 1_764_000_000_000)
  private var loop: EventLoop!
  private var webhooks: WebhookLoop!
  private var writer: JournalWriter
  private let commit = GroupCommit(limits: JournalLimits())
  private var events: UInt64 = 0
  private var rule = URLRule()
  private let positions: PositionSource?

  init(
    _ deliveries: Deliveries = Deliveries(), allowed: [String] = [], positions: PositionSource? = nil
  ) throws {
    self.positions = positions
    for text in allowed where !rule.allow(text) { Issue.record("\(text) is no rule") }
    writer = try Recovery(files: try DiskFiles(path: directory), limits: JournalLimits()).run(damage: .refuse) { _ in
    } group: { _, _ in
    }.takeWriter()
    commit.durableGroups.store(0, ordering: .releasing)
    try start(deliveries)
  }

  /// The thread begins, or begins anew, as after a crash, so many seconds later.
  func start(_ deliveries: Deliveries, after seconds: Double = 0) throws {
    (webhooks, loop) = (nil, nil)
    pass(seconds)
    loop = try EventLoop(limits: WebhookLoop.loopLimits, clock: { [unowned self] in reading }, network: network)
    let source = WebhookSource(
      journal: JournalConfiguration(directory: directory), commit: commit, epoch: "e1",
      recovered: commit.durableGroup ?? 0, hasLost: false)
    webhooks = WebhookLoop(
      loop, deliveries, source, positions, allowed: rule, control: control, lifecycle: Lifecycle(delaySeconds: 0),
      log: Log(level: .error),
      userAgent: "hub/1", chance: { 0.5 })
    control.begin(waking: loop.waker)
    turn()
  }

  /// Puts a folder where a file of the webhooks' folder was, or would be: nothing can open it.
  func block(_ name: String) throws {
    let path = directory + "/webhooks/" + name
    if FileManager.default.fileExists(atPath: path) {
      try FileManager.default.moveItem(atPath: path, toPath: path + ".kept")
    }
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
  }

  func unblock(_ name: String) throws {
    let path = directory + "/webhooks/" + name
    try FileManager.default.removeItem(atPath: path)
    if FileManager.default.fileExists(atPath: path + ".kept") {
      try FileManager.default.moveItem(atPath: path + ".kept", toPath: path)
    }
  }

  func remove() { try? FileManager.default.removeItem(atPath: directory) }

  var webhook: WebhookFigures? { webhooks.webhooks.first.map { $0.currentFigures(webhooks.now) } }
  /// Connections of the present webhook that it keeps for the next request.
  var idleConnections: Int? { webhooks.webhooks.first?.idle.count }
  /// Channels of which the present webhook remembers anything it has read.
  var rememberedChannels: Int? { webhooks.webhooks.first?.reader.passed.count }
  var rememberedEvents: Int? { webhooks.webhooks.first?.reader.remembered }
  var stream: StreamFigures? { webhooks.streams.figures(webhooks.now).first }

  /// Asks, and lets the thread have a turn; nil where no answer has come.
  func ask(_ question: WebhookQuestion) -> WebhookAnswer? {
    let said = Said()
    #expect(control.ask(question) { answer in said.answer.withLock { $0 = answer } })
    turn()
    return said.answer.withLock { $0 }
  }

  /// What was logged, also later.
  final class Said: Sendable {
    let answer = Locked<WebhookAnswer?>(nil)
  }

  /// What the receiver of the present webhook may be set to from the next start on.
  func allow(_ allowed: [String]) {
    rule = URLRule()
    for text in allowed where !rule.allow(text) { Issue.record("\(text) is no rule") }
  }

  /// The files of a webhook.
  func files(of name: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: directory + "/webhooks")) ?? []).filter {
      $0.hasPrefix(name + ".")
    }
  }

  /// How many secrets a webhook's definition has on the disk.
  func storedSecrets(of name: String) throws -> Int? {
    let file = try Data(contentsOf: URL(fileURLWithPath: directory + "/webhooks/\(name)\(WebhookDefinition.suffix)"))
    return WebhookDefinition(name: name, file: Array(file))?.secrets.count
  }

  /// Puts a folder where a webhook's definition was: nothing can remove it as a file.
  func holdDefinition(of name: String) throws {
    let path = directory + "/webhooks/\(name)\(WebhookDefinition.suffix)"
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
  }

  /// Puts folders where the journal's segments were: nothing can open them, and its writer continues.
  func hideSegments() throws {
    for path in try segments() {
      try FileManager.default.moveItem(atPath: path, toPath: path + ".hidden")
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }
  }

  func showSegments() throws {
    for path in try segments() {
      try FileManager.default.removeItem(atPath: path)
      try FileManager.default.moveItem(atPath: path + ".hidden", toPath: path)
    }
  }

  /// Deletes what is stored so far, as retention does.
  func deleteHistory() throws {
    writer.sealSegment()
    for path in try segments() { try FileManager.default.removeItem(atPath: path) }
  }

  /// A bit of a stored group changes by itself.
  func spoil(_ group: UInt64) throws {
    var place: (segment: String, offset: Int)?
    let tail = try JournalTail(directory: directory, limits: JournalLimits(), next: group)
    let isFound = try tail.read(through: group) { position, _ in
      place = (FileHeader.name(.segment, position.segment), position.offset)
    }
    let (segment, offset) = try #require(isFound ? place : nil)
    let url = URL(fileURLWithPath: directory + "/" + segment)
    var bytes = try Data(contentsOf: url)
    bytes[offset + GroupHeader.size] ^= 1
    try bytes.write(to: url)
  }

  private func segments() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory).filter { $0.hasSuffix(".segment") }.map {
      directory + "/" + $0
    }
  }

  /// The ids of events by their titles, and the signatures of each request.
  private(set) var ids: [String: String] = [:]
  private(set) var signatures: [[Substring]] = []
  private(set) var signed: [(id: String, timestamp: Timestamp, body: String)] = []

  /// Takes all requests that come, also those that follow from the answers: their titles, or `test`.
  func takeEvents(answering status: String = "204 No Content") -> [String] {
    var titles: [String] = []
    var isMore = true
    while isMore {
      isMore = false
      for number in network.dialled.indices {
        let text = heard(number)
        guard text.hasPrefix("POST ") else { continue }
        isMore = true
        let title = text.firstMatch(of: /"title":"(\w+)"/).map { String($0.1) } ?? "test"
        titles.append(title)
        ids[title] = text.firstMatch(of: /webhook-id: (\S+)/).map { String($0.1) }
        signed.append((ids[title] ?? "", now, String(text.split(separator: "\r\n\r\n", maxSplits: 1).last ?? "")))
        signatures.append(text.firstMatch(of: /webhook-signature: (.*)\r\n/).map { $0.1.split(separator: " ") } ?? [])
        say("HTTP/1.1 \(status)\r\ncontent-length: 0\r\n\r\n", number)
      }
    }
    return titles
  }

  var now: Timestamp { Timestamp(milliseconds: reading.unixMilliseconds) }

  /// Events of a trip are stored, as one group.
  func publish(_ trip: String = "T1", count: Int = 1) throws {
    var payload = ByteBuffer()
    for _ in 0..<count {
      events += 1
      let body = HubMessages.Notification(
        kind: .fenceEnter, title: "\(events)", body: "b", driverID: nil, leg: nil, sequence: events)
      RecordWriter.write(
        .event(
          Publication(
            channel: .trip(Identifier(trip)!), number: events,
            timestamp: Timestamp(milliseconds: reading.unixMilliseconds), body: .notification(body))), into: &payload)
    }
    let group = try payload.withBytes { (bytes) throws(JournalError) in try writer.append(bytes, created: 1) }
    commit.durableGroups.store(group, ordering: .releasing)
    turn()
  }

  static let turns = 6

  /// What is on its way arrives, until nothing more comes of it.
  func turn() {
    for _ in 0..<Self.turns {
      for far in network.dialled {
        far.arrive()
        far.peer?.arrive()
      }
      loop.runTurn(timeoutMilliseconds: 0)
      sleep = loop.timeToSleep(atMost: -1)
    }
  }

  func advance(_ seconds: Double) {
    pass(seconds)
    turn()
  }

  private func pass(_ seconds: Double) {
    reading.uptimeNanoseconds += Int64((seconds * 1e9).rounded())
    reading.unixMilliseconds += Int64((seconds * 1000).rounded())
  }

  /// How long the thread would sleep then, in milliseconds; negative for no limit. It is asked after each turn.
  private(set) var sleep: Int32 = 0

  /// What came over a connection since the last time.
  func heard(_ number: Int) -> String {
    let text = String(decoding: network.dialled[number].receiveAll(), as: UTF8.self)
    for line in text.split(separator: "\r\n") where line.hasPrefix("HPUB ") {
      inboxes.append(String(line.split(separator: " ")[2]))
    }
    return text
  }

  func hasEnded(_ number: Int) -> Bool { network.dialled[number].end != nil }

  func say(_ text: String, _ number: Int) {
    Array(text.utf8).withUnsafeBytes { _ = network.dialled[number].send($0) }
    turn()
  }

  func greet(_ number: Int) {
    say(#"INFO {"headers":true,"max_payload":1048576}"# + "\r\n", number)
    _ = heard(number)
    say("PONG\r\n", number)
  }

  /// NATS answers the newest event that was heard.
  func acknowledge(_ number: Int, _ json: String) { acknowledge(inboxes.count - 1, on: number, json) }

  /// NATS answers an event: the first that was heard is 0.
  func acknowledge(_ event: Int, on number: Int, _ json: String) {
    say("MSG \(inboxes[event]) 1 \(json.utf8.count)\r\n\(json)\r\n", number)
  }

  /// Of two events a stream's NATS server stores the second, and refuses the first: its channel is ahead of the cursor.
  func refuseFirst() throws {
    greet(0)
    try publish("T1")
    try publish("T2")
    #expect(heard(0).contains("HPUB locationhub.trip.T2."))
    acknowledge(1, on: 0, #"{"stream":"S","seq":1}"#)
    acknowledge(0, on: 0, #"{"error":{"code":503,"description":"no"}}"#)
    #expect(stream?.stored == 1 && stream?.refused == 1)
  }

  private var inboxes: [String] = []

  /// Open look-ups of webhooks' names.
  var openLookups: Int { webhooks.lookups.count }

  /// From now on webhooks' names are looked up by `lookUp`, on threads.
  func lookUp(_ lookUp: @escaping @Sendable (NameResolver.Question) -> [SocketAddress]) {
    webhooks.names = NameResolver(capacity: 40, threads: 40, waking: loop.waker) { .success(lookUp($0)) }
  }

  /// Gives the present webhook the addresses of its name, and keeps them.
  func resolve(_ addresses: [SocketAddress]) {
    for webhook in webhooks.webhooks { (webhook.addresses, webhook.addressesUntil) = (addresses, .max) }
  }

  /// Gives the present stream another address to connect to.
  func offerAddress(_ address: SocketAddress) {
    for stream in webhooks.streams.streams { stream.untried.append(address) }
  }
}
