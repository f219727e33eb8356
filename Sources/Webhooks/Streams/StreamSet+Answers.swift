// What the servers of streams say.
import HubMessages
import HubRuntime
import HubSystem
import HubTransport

extension StreamSet {
  func takeEvents(_ stream: OutStream, _ now: Moment) {
    for event in stream.sink.takeEvents() {
      stream.figures.count(event)
      switch event {
      case .ready:
        if stream.failuresInRow > 0 { log(.info, "stream_back", ["stream": stream.endpoint.name]) }
        stream.failuresInRow = 0
      case .plainTextEnds: if let peer = stream.peer { loop.beginTLS(stream.connection, peer) }
      case .stored(let positions, _): stored(stream, positions)
      case .refused(let positions, let reason, let wait): refused(stream, positions, reason, wait, now)
      case .positionsRefused(let count):
        stream.positions.refused(count)
      case .impossible(let position, let reason):
        if let message = stream.queue.giveUp(position) { dead(stream, message, reason, now) }
      case .gone:
        stream.queue.disable()
        log(
          .error, "stream_disabled",
          [
            "stream": stream.endpoint.name,
            "hint": "its receiver answered 410; locationhub webhooks enable has it served again",
          ])
      case .finished:
        loop.abort(stream.connection)
        stream.connection = .none
        stream.waitsSince = nil
        _ = stream.sink.closed("")
      case .failed(let reason): failed(stream, reason, now)
      }
    }
  }

  private func stored(_ stream: OutStream, _ positions: [JournalPosition]) {
    stream.queue.stored(positions)
    let wasAway = stream.failuresInRow > 0 || stream.isRefused
    (stream.failuresInRow, stream.backOff) = (0, 0)
    stream.isRefused = stream.isRefused && stream.queue.hasRefused
    if wasAway, !stream.isRefused { log(.info, "stream_back", ["stream": stream.endpoint.name]) }
  }

  private func refused(
    _ stream: OutStream, _ positions: [JournalPosition], _ reason: String, _ wait: Double?, _ now: Moment
  ) {
    log(
      stream.isRefused ? .debug : .warning, "stream_refused",
      [
        "stream": stream.endpoint.name, "reason": reason,
        "hint": "nothing is lost: it is tried again by the schedule of webhooks, and at once on SIGHUP",
      ])
    stream.isRefused = true
    for message in stream.queue.refused(positions, retryAfterSeconds: wait, now, unit: chance()) {
      dead(stream, message, reason, now)
    }
  }

  private func dead(_ stream: OutStream, _ message: StreamMessage, _ reason: String, _ now: Moment) {
    stream.figures.dead += 1
    log(.error, "stream_dead", ["stream": stream.endpoint.name, "id": message.id, "reason": reason])
    store(stream) { (stream) throws(SystemError) in
      try stream.deadLetters.append(id: message.id, channel: message.source, reason: reason, at: now.timestamp)
    }
  }
}
