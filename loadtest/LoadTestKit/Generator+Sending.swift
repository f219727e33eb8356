// What is due: fixes, batches, steps of simulated drives.
import HubBytes
import HubSystem
import HubTransport
import HubWebSocket

extension Generator {
  /// Sends everything that is due by now, round robin: drivers are due in the order of their numbers.
  func sendDue(_ schedule: Schedule, _ now: Int64) {
    guard !drivers.isEmpty else { return }
    if scenario.lockstep > 0 {
      if counts.sent < scenario.lockstep, counts.delivered >= counts.expected { sendNext() }
      return
    }
    while isSending {
      let due = schedule.due(share.number(cursor), round)
      guard due <= now else { return }
      if schedule.window.contains(due) { counts.lateness.record(nanoseconds: now - due) }
      sendNext()
    }
  }

  private func sendNext() {
    send(cursor, round)
    cursor += 1
    if cursor == drivers.count {
      cursor = 0
      round += 1
    }
  }

  private func send(_ local: Int, _ number: Int) {
    let driver = drivers[local]
    if scenario.bookings { return drive(local, number) }
    if scenario.batch > 0 { return sendBatch(driver, number) }
    counts.sent += 1
    counts.expected += scenario.ridersPerTrip
    let numberOfDriver = driver.pointee.number
    sendText(driver) { buffer in
      buffer.append("{\"type\":\"location_update\",\"payload\":{")
      if scenario.watchers > 0 {
        watched.appendFix(numberOfDriver, number, to: &buffer)
      } else {
        buffer.append("\"tripId\":\"T")
        buffer.append(utf8: scenario.tag)
        buffer.append(integer: Int64(numberOfDriver))
        buffer.append("\",")
        Generator.appendFix(numberOfDriver, number, to: &buffer)
      }
      buffer.append("},\"timestamp\":")
      buffer.append(integer: loop.now.unixMilliseconds)
      buffer.append(",\"messageId\":\"d")
      buffer.append(integer: Int64(numberOfDriver))
      buffer.append("-")
      buffer.append(integer: Int64(number))
      buffer.append("\"}")
    }
  }

  private func sendBatch(_ driver: PeerPointer, _ number: Int) {
    counts.sent += scenario.batch
    counts.requests += 1
    let numberOfDriver = driver.pointee.number
    sendText(driver) { buffer in
      buffer.append("{\"type\":\"location_batch\",\"payload\":{\"locations\":[")
      for index in 0..<scenario.batch {
        buffer.append(index == 0 ? "{" : ",{")
        Generator.appendFix(numberOfDriver, number * scenario.batch + index, to: &buffer)
        buffer.append("}")
      }
      buffer.append("]},\"timestamp\":")
      buffer.append(integer: loop.now.unixMilliseconds)
      buffer.append(",\"messageId\":\"b")
      buffer.append(integer: Int64(number))
      buffer.append("\"}")
    }
  }

  /// The members of a fix: 10 m further than the last, up a street and down again.
  private static func appendFix(_ driver: Int, _ number: Int, to buffer: inout ByteBuffer) {
    let (lap, step) = number.quotientAndRemainder(dividingBy: 2000)
    let isReturning = lap & 1 == 1
    buffer.append("\"latitude\":")
    buffer.append(
      fixed: 48.1 + Double(driver % 10_000) * 1e-4 + Double(isReturning ? 2000 - step : step) * 9e-5, decimals: 7)
    buffer.append(",\"longitude\":11.5,\"accuracy\":5.2,\"heading\":")
    buffer.append(isReturning ? "180" : "0.5")
    buffer.append(",\"speed\":10.01,\"timestamp\":")
    buffer.append(integer: Int64(FixTime.timestamp(number)))
  }

  /// A message to the hub, which `body` writes as JSON.
  func sendText(_ peer: PeerPointer, _ body: (inout ByteBuffer) -> Void) {
    if let end = peer.pointee.binary { return sendBinary(peer, end, body) }
    let payload = FrameWriter.begin(as: .client, in: &loop.arena)
    body(&loop.arena)
    let start = FrameWriter.finish(.text, payloadAt: payload, mask: MaskKey(0x1234_5678), in: &loop.arena)
    loop.send(start..<loop.arena.count, to: peer.pointee.id)
  }

  func answer(_ peer: PeerPointer, _ ping: UnsafeRawBufferPointer) {
    let start = loop.arena.count
    FrameWriter.write(.pong, ping, mask: MaskKey(0x1234_5678), into: &loop.arena)
    loop.send(start..<loop.arena.count, to: peer.pointee.id)
  }
}
