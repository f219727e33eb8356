// What comes from the hub: counted, checked for order, and its latency taken from when it was due.
import HubBytes
import HubSystem
package import HubTransport
import HubWebSocket

extension Generator {
  package func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    guard let peer = peer(id) else { return }
    if peer.pointee.kind == .fleet { return answeredFleet(peer, bytes) }
    var offset = 0
    if !peer.pointee.isUpgraded {
      guard let frames = readHead(peer, bytes) else { return }
      offset = frames
    }
    do throws(FrameError) {
      while let event = try peer.pointee.frames.next(in: bytes, at: &offset, limits: frameLimits) {
        switch event {
        case .message(_, let payload, isCompressed: false):
          if let end = peer.pointee.binary { receivedBinary(peer, end, payload) } else { received(peer, payload) }
        case .message(let kind, let payload, isCompressed: true):
          received(peer, try inflater.inflate(payload, kind, limits: InflateLimits()))
        case .ping(let payload): answer(peer, payload)
        case .pong: break
        case .close(let code, reason: _):
          counts.fail("the hub closed \(peer.pointee.kind.name)-\(peer.pointee.number) with \(code?.rawValue ?? 0)")
        }
      }
    } catch {
      counts.fail("a broken frame: \(error)")
    }
    if peer.pointee.kind == .slow, peer.pointee.isReady { slowDown(peer, read: bytes.count) }
  }

  func received(_ peer: PeerPointer, _ payload: UnsafeRawBufferPointer) {
    // Behind {"type":"
    let type = UnsafeRawBufferPointer(rebasing: payload[min(9, payload.count)..<min(payload.count, 26)])
    if type.starts(with: "driver_location\"".utf8) { return position(peer, payload) }
    if type.starts(with: "area_update\"".utf8) { return areaUpdate(peer, payload) }
    if type.starts(with: "trip_update\"".utf8) || type.starts(with: "notification\"".utf8) {
      return event(peer, payload)
    }
    if type.starts(with: "ack\"".utf8) { return acknowledge(peer, payload) }
    if type.starts(with: "connected\"".utf8) { return welcome(peer) }
    if type.starts(with: "subscribed\"".utf8) { return subscribed(peer, payload) }
    if type.starts(with: "error\"".utf8) {
      counts.fail("\(peer.pointee.kind.name)-\(peer.pointee.number) got \(String(decoding: payload, as: UTF8.self))")
    }
    // What else there is (sampling, eta_update, unsubscribed) is not counted.
  }

  private func subscribed(_ peer: PeerPointer, _ payload: UnsafeRawBufferPointer) {
    peer.pointee.sequence = Scan.integer("\"sequence\":", in: payload)
    if let epoch = Scan.text("\"epoch\":\"", in: payload) { peer.pointee.epoch = Array(epoch) }
    if Scan.contains("\"recovered\":true", in: payload) { counts.recovered += 1 }
    if scenario.bookings, peer.pointee.kind == .rider { return follows(peer, payload) }
    if peer.pointee.awaited > 1 {
      peer.pointee.awaited -= 1
      return
    }
    becameReady(peer)
  }

  // MARK: Positions

  private func position(_ peer: PeerPointer, _ payload: UnsafeRawBufferPointer) {
    guard let number = Scan.fixTimestamp(payload).flatMap(FixTime.number) else {
      return counts.fail("a position without a timestamp: \(String(decoding: payload, as: UTF8.self))")
    }
    lastCame = loop.now.uptimeNanoseconds
    switch peer.pointee.kind {
    case .rider: ridersPosition(peer, number)
    case .slow: slowPosition(peer, payload, number)
    case .churner, .storm, .idle, .driver, .watcher, .fleet: counts.extra += 1
    }
  }

  private func ridersPosition(_ peer: PeerPointer, _ number: Int) {
    if scenario.bookings {
      guard let first = peer.pointee.expectsFrom, number >= first else {
        counts.extra += 1
        return
      }
    }
    check(number, behind: peer.pointee.lastNumber)
    peer.pointee.lastNumber = max(peer.pointee.lastNumber, number)
    guard let schedule else { return }
    let due = schedule.due(peer.pointee.number, number)
    guard let part = schedule.part(of: due) else { return }
    let microseconds = UInt64(max(0, ClockReading.read().uptimeNanoseconds - due)) / 1000
    counts.parts[part].record(microseconds: microseconds)
    worst = max(worst, microseconds)
  }

  private func check(_ number: Int, behind last: Int) {
    if number == last {
      counts.duplicated += 1
    } else {
      counts.delivered += 1
      if number < last { counts.outOfOrder += 1 }
    }
  }

  private func slowPosition(_ peer: PeerPointer, _ payload: UnsafeRawBufferPointer, _ number: Int) {
    guard let id = Scan.text("\"driverId\":\"", in: payload), let driver = Scan.trailingNumber(id),
      driver < peer.pointee.lastNumbers.count
    else { return counts.fail("a position of nobody: \(String(decoding: payload, as: UTF8.self))") }
    let last = Int(peer.pointee.lastNumbers[driver])
    check(number, behind: last)
    peer.pointee.lastNumbers[driver] = Int32(truncatingIfNeeded: max(last, number))
    counts.slowDelivered += 1
  }

  // MARK: Slow reading

  /// What was read must last for its bytes' time. When the load is over, all that is left is read at once.
  private func slowDown(_ peer: PeerPointer, read count: Int) {
    guard isSending else { return }
    let pause = Int64(count) * 1_000_000_000 / Int64(scenario.slowBytesPerSecond)
    peer.pointee.readsAt = max(peer.pointee.readsAt, loop.now.uptimeNanoseconds) + pause
    loop.pauseReading(peer.pointee.id)
  }

  func resumeSlow(_ now: Int64) {
    for peer in slow where peer.pointee.readsAt > 0 && (peer.pointee.readsAt <= now || !isSending) {
      peer.pointee.readsAt = isSending ? peer.pointee.readsAt : 0
      loop.resumeReading(peer.pointee.id)
    }
  }

  // MARK: Events and acks

  private func event(_ peer: PeerPointer, _ payload: UnsafeRawBufferPointer) {
    guard peer.pointee.kind == .rider else { return }
    guard let number = Scan.integer("\"sequence\":", in: payload) else {
      return counts.fail("an event without a number: \(String(decoding: payload, as: UTF8.self))")
    }
    if scenario.bookings, !isOfItsTrip(peer, payload) { return }
    guard let last = peer.pointee.sequence else { return }
    counts.events += 1
    if number <= last { counts.eventsDuplicated += 1 }
    if number > last + 1 { counts.eventsLost += number - last - 1 }
    peer.pointee.sequence = max(last, number)
  }

  /// The ids of batches and moves end with the number of what was due.
  private func acknowledge(_ peer: PeerPointer, _ payload: UnsafeRawBufferPointer) {
    counts.acknowledged += 1
    lastCame = loop.now.uptimeNanoseconds
    guard let schedule, let id = Scan.text("\"replyTo\":\"", in: payload), let number = Scan.trailingNumber(id) else {
      return
    }
    let due = schedule.due(peer.pointee.number, number)
    if schedule.window.contains(due) {
      counts.acks.record(nanoseconds: ClockReading.read().uptimeNanoseconds - due)
    }
    if Scan.contains("\"rejected\":[{", in: payload) {
      counts.fail("fixes of a batch were rejected: \(String(decoding: payload, as: UTF8.self))")
    }
  }
}
