// The streams of a hub, on the webhooks' thread: connections to their servers, input, and time. The loop's owner passes
// its callbacks on, and calls `takeTurn` at each turn's end.
import HubBytes
import HubJournal
import HubMessages
import HubRuntime
import HubSystem
import HubTransport

final class StreamSet {
  let loop: EventLoop
  private let source: WebhookSource
  let log: Log
  private let userAgent: String
  private let names: NameResolver
  private let positions: PositionFeed?
  let chance: () -> Double
  private(set) var streams: [OutStream] = []
  /// Streams of the settings that could not be opened, or stopped since.
  private(set) var unopened: Set<String> = []
  private var lookups: UInt64 = 0
  private var durable: UInt64?
  private var nextPositions = Int64.min
  /// When `takeTurn` is to be called again at the latest (uptime, ns).
  private(set) var nextTime = Int64.max

  /// Distinguishes its look-ups from those of webhooks.
  static let resolverClient = 1

  init(
    _ loop: EventLoop, _ source: WebhookSource, _ log: Log, userAgent: String, names: NameResolver,
    positions: PositionFeed?, chance: @escaping () -> Double
  ) {
    self.loop = loop
    self.source = source
    self.log = log
    self.userAgent = userAgent
    self.names = names
    self.positions = positions
    self.chance = chance
  }

  var isEmpty: Bool { streams.isEmpty }

  // MARK: Settings

  static let retryHint = "it is tried again each minute, and on SIGHUP"

  /// Stores and stops all streams; `open` then opens those of the new settings.
  func replace(by endpoints: [StreamEndpoint]) {
    synchronize()
    for stream in streams { halt(stream) }
    unopened = Set(endpoints.prefix(StreamEndpoint.maximumCount).map(\.name))
    streams.removeAll { !unopened.contains($0.endpoint.name) }
  }

  /// Opens those of the settings that are not open; each continues, unanswered events are sent again, and delayed ones
  /// are tried. What can't be opened is off: the stream of its name before stays, stopped.
  func open(_ endpoints: [StreamEndpoint], _ folder: ProgressFolder, _ newest: UInt64) {
    for endpoint in endpoints where unopened.contains(endpoint.name) {
      let index = streams.firstIndex { $0.endpoint.name == endpoint.name }
      do throws(JournalError) {
        let new = try make(endpoint, folder, newest, index.map { streams[$0] })
        if let index { streams[index] = new } else { streams.append(new) }
        unopened.remove(endpoint.name)
      } catch {
        log(.error, "stream_stopped", ["stream": endpoint.name, "error": "\(error)", "hint": Self.retryHint])
        continue
      }
      if endpoint.hasPositions, positions == nil {
        log(
          .warning, "stream_without_positions",
          ["stream": endpoint.name, "hint": "restart the hub: it was started without a stream with positions"])
      }
    }
  }

  private func make(
    _ endpoint: StreamEndpoint, _ folder: ProgressFolder, _ newest: UInt64, _ old: OutStream?
  ) throws(JournalError) -> OutStream {
    let (file, progress, _) = try folder.open(.stream, endpoint.name, newest)
    let tail = try folder.tail(from: progress.cursor.group)
    let deadLetters = folder.deadLetters(.stream, endpoint.name)
    log(.info, "stream", ["stream": endpoint.name, "url": "\(endpoint.url)", "enabled": "\(progress.isEnabled)"])
    var figures = old?.figures
    figures?.positionsLeftOut = old?.positions.leftOut ?? 0
    return OutStream(endpoint, sink(endpoint, file), file, progress, tail, deadLetters, figures: figures)
  }

  private func sink(_ endpoint: StreamEndpoint, _ file: ProgressFile) -> any StreamSink {
    let token = String(UInt64(chance() * 0x1p52), radix: 36) + String(UInt64(chance() * 0x1p52), radix: 36)
    return switch endpoint.url.kind {
    case .nats: NATSConnection(endpoint, inbox: token)
    case .redis: RedisSink(endpoint, epoch: file.epoch)
    case .batches: BatchSink(endpoint, userAgent: userAgent)
    }
  }

  // MARK: A turn

  /// Reads events that are stored up to group `last`, sends those due, and handles timeouts.
  func takeTurn(_ now: Moment, through last: UInt64?) {
    nextTime = .max
    if last != durable { for stream in streams { stream.isAtEnd = false } }
    durable = last
    movePositions(now)
    for stream in streams where !stream.isStopped {
      if let since = stream.owedSince, since + Self.answerTime <= now.uptime {
        failed(stream, "no answer in time", now)
      } else if let end = stream.connectDeadline, end <= now.uptime {
        loop.abort(stream.connection)
        connectElsewhere(stream, now, "no connection in time")
      }
      do throws(JournalError) {
        let (lost, damaged) = (stream.figures.lost, stream.reader.damagedGroups)
        if let last, try stream.read(through: last, now) { wake(at: now.uptime) }
        if stream.figures.lost > lost {
          logLost(stream, stream.figures.lost - lost, isDamage: stream.reader.damagedGroups > damaged)
        }
      } catch {
        stop(stream, error)
        continue
      }
      send(stream, now)
      store(stream) { (stream) throws(SystemError) in try stream.store() }
      wake(at: min(stream.owedSince.map { $0 + Self.answerTime } ?? .max, stream.connectDeadline ?? .max))
      for time in [stream.queue.nextTime, stream.connection == .none ? stream.connectAt : .max]
      where time > now.uptime {
        wake(at: time)
      }
    }
  }

  private func wake(at time: Int64) { nextTime = min(nextTime, time) }

  private func send(_ stream: OutStream, _ now: Moment) {
    if stream.isConnected, stream.sink.isReady {
      let due = stream.queue.takeDue(now)
      if !due.isEmpty {
        stream.sink.send(due, now)
        takeEvents(stream, now)
      }
    } else if stream.connection == .none {
      if !stream.sink.isConnectedOnDemand || stream.queue.isDue(now) || !stream.positions.isEmpty {
        begin(stream, now)
      }
    }
    flush(stream)
  }

  /// Takes positions from the hub and sends them if the server is up; unsent ones are replaced by later ones.
  private func movePositions(_ now: Moment) {
    guard let positions else { return }
    defer { wake(at: nextPositions) }
    guard nextPositions <= now.uptime else { return }
    nextPositions = now.uptime + PositionFeed.interval
    let takers = streams.filter { $0.endpoint.hasPositions && $0.queue.isEnabled && !$0.isStopped }
    positions.take(now) { position in for stream in takers { stream.positions.put(position) } }
    for stream in takers where !stream.positions.isEmpty {
      if stream.isConnected, stream.sink.takesPositions, stream.queue.heldUntil <= now.uptime {
        guard loop.pendingBytes(stream.connection) < Self.unsentBytes else { continue }
        let count = stream.sink.send(&stream.positions, now)
        stream.figures.positionsSent = (stream.figures.positionsSent ?? 0) + UInt64(count)
        noteOwed(stream, now)
        takeEvents(stream, now)
      } else if stream.connection == .none && stream.connectAt > now.uptime
        || !stream.sink.isReady && !stream.sink.isConnectedOnDemand
      {
        stream.positions.clear()
      }
    }
  }

  private func flush(_ stream: OutStream) {
    guard stream.connection != .none else { return }
    let start = loop.arena.count
    stream.sink.takeOutput(into: &loop.arena)
    if loop.arena.count > start { loop.send(start..<loop.arena.count, to: stream.connection) }
  }

  /// Syncs the streams' progress.
  func synchronize() {
    for stream in streams { store(stream) { (stream) throws(SystemError) in try stream.synchronize() } }
  }

  func figures(_ now: Moment) -> [StreamFigures] {
    let known = streams.map(\.endpoint.name)
    return streams.map { $0.currentFigures(now, leftOut: positions?.leftOut ?? 0) }
      + unopened.subtracting(known).sorted().map { StreamFigures(off: $0) }
  }

  func store(_ stream: OutStream, _ body: (OutStream) throws(SystemError) -> Void) {
    do throws(SystemError) { try body(stream) } catch {
      if stream.figures.notStored == 0 {
        log(
          .error, "stream_not_stored",
          ["stream": stream.endpoint.name, "error": "\(error)", "hint": "a crash now repeats what was sent"])
      }
      stream.figures.notStored += 1
    }
  }

  private func logLost(_ stream: OutStream, _ groups: UInt64, isDamage: Bool) {
    log(
      .error, "stream_lost",
      ["stream": stream.endpoint.name, "groups": "\(groups)", "hint": Self.lossHint(isDamage: isDamage)])
  }

  /// Why groups of the journal were not read.
  static func lossHint(isDamage: Bool) -> String {
    isDamage
      ? "the journal is damaged: locationhub journal verify lists where"
      : "retention deleted them before they were delivered"
  }

  /// The journal can't be read: nothing is sent before the stream is opened again, and nothing lost.
  private func stop(_ stream: OutStream, _ error: JournalError) {
    log(
      .error, "stream_stopped", ["stream": stream.endpoint.name, "error": "\(error)", "hint": Self.retryHint])
    halt(stream)
    unopened.insert(stream.endpoint.name)
  }

  /// Sends nothing more through a stream. It stays in the list, so that its figures say so, until another one replaces
  /// it.
  private func halt(_ stream: OutStream) {
    loop.abort(stream.connection)
    (stream.connection, stream.lookup, stream.waitsSince) = (.none, nil, nil)
    stream.queue.lost()
    stream.positions.clear()
    stream.isStopped = true
  }
}

// MARK: - Connections

extension StreamSet {
  private func begin(_ stream: OutStream, _ now: Moment) {
    guard stream.queue.isEnabled, stream.connectAt <= now.uptime, stream.lookup == nil else { return }
    let url = stream.endpoint.url.url
    if let address = url.address {
      stream.untried = [address]
      return connect(stream, now, "")
    }
    lookups += 1
    stream.lookup = lookups
    let question = NameResolver.Question(
      client: Self.resolverClient, attempt: lookups, host: url.host, port: url.port)
    if !names.ask(question) {
      stream.lookup = nil
      failed(stream, "too many names are being looked up", now)
    }
  }

  /// Takes the resolver's result.
  func take(_ answer: NameResolver.Answer, _ now: Moment) {
    guard let stream = streams.first(where: { $0.lookup == answer.question.attempt }) else { return }
    stream.lookup = nil
    switch answer.result {
    case .failure(let error): failed(stream, "cannot look up \(stream.endpoint.url.url.host): \(error.text)", now)
    case .success(let addresses):
      stream.untried = stream.addressOrder.order(addresses)[...]
      connect(stream, now, "no address")
    }
  }

  /// Connects to the next allowed address.
  private func connect(_ stream: OutStream, _ now: Moment, _ reason: String) {
    var reason = reason
    let url = stream.endpoint.url
    while let address = stream.untried.popFirst() {
      guard url.kind != .batches || stream.endpoint.addresses.allows(address, isSecure: url.isSecure) else {
        reason = "\(address.host) is inside, or http, and not in allow"
        continue
      }
      do throws(SystemError) {
        // A NATS server begins in plain text.
        stream.connection = try loop.connect(address, tls: url.kind == .nats ? nil : stream.peer)
        (stream.address, stream.dialled) = (address, now.uptime)
        stream.waitsSince = stream.waitsSince ?? now.uptime
        stream.isConnected = false
        stream.sink.opened(now)
        return
      } catch {
        stream.addressOrder.note(failed: address)
        reason = "\(error)"
      }
    }
    failed(stream, reason, now)
  }

  private func connectElsewhere(_ stream: OutStream, _ now: Moment, _ reason: String) {
    stream.connection = .none
    _ = stream.sink.closed(reason)  // it has sent only a greeting
    if let address = stream.address { stream.addressOrder.note(failed: address) }
    connect(stream, now, reason)
  }

  private func stream(_ id: ConnectionID) -> OutStream? {
    id == .none ? nil : streams.first { $0.connection == id }
  }

  func connected(_ id: ConnectionID, _ now: Moment) {
    guard let stream = stream(id) else { return }
    if stream.isConnected {
      stream.sink.secured()
      flush(stream)
    }
    stream.isConnected = true
    noteOwed(stream, now)
  }

  /// Notes whether the server owes anything else than answers to events.
  private func noteOwed(_ stream: OutStream, _ now: Moment) {
    if stream.sink.owesAnswer {
      stream.waitsSince = stream.waitsSince ?? now.uptime
    } else if stream.sink.isReady {
      stream.waitsSince = nil
    }
  }

  func received(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, _ now: Moment) {
    guard let stream = stream(id) else { return }
    unsafe stream.sink.received(bytes, now)
    takeEvents(stream, now)
    noteOwed(stream, now)
    flush(stream)
  }

  func overflowed(_ id: ConnectionID, _ now: Moment) {
    if let stream = stream(id) { failed(stream, "it does not take what is sent", now) }
  }

  func closed(_ id: ConnectionID, _ cause: String, _ now: Moment) {
    guard let stream = stream(id) else { return }
    if !stream.isConnected, !stream.untried.isEmpty { return connectElsewhere(stream, now, cause) }
    stream.connection = .none
    failed(stream, cause, now)
  }

  /// The connection has ended: unanswered events are sent over the next one.
  func failed(_ stream: OutStream, _ reason: String, _ now: Moment) {
    loop.abort(stream.connection)
    stream.connection = .none
    stream.waitsSince = nil
    let isQuiet = stream.sink.closed(reason)
    takeEvents(stream, now)
    stream.queue.lost()
    if isQuiet { return }
    if let address = stream.address { stream.addressOrder.note(failed: address) }
    stream.figures.failures += 1
    stream.failuresInRow += 1
    stream.backOff = min(max(2 * stream.backOff, Self.firstBackOff), Self.longestBackOff)
    stream.connectAt = now.uptime + stream.backOff + Int64(Double(stream.backOff) * 0.5 * chance())
    log(
      stream.failuresInRow == 1 ? .warning : .debug, "stream_down",
      ["stream": stream.endpoint.name, "reason": reason, "hint": "it is tried again until it is back"])
  }
}
