// What only has to be there: drivers who are known by one fix over HTTP and have no session, and trips without news
// that idle sessions follow.
import HubBytes
import HubCommandLine
import HubTransport

extension Generator {
  /// Connections of a share over which fixes are sent, and how many requests of each are under way.
  static let fleetConnections = 16
  private static let fleetRequests = 64

  // MARK: Drivers in the index

  /// Sends the next drivers that are this connection's.
  func registerFleet(_ peer: PeerPointer) {
    let step = Generator.fleetConnections * share.count
    let start = loop.arena.count
    while peer.pointee.awaited < Generator.fleetRequests, peer.pointee.registered < scenario.fleet {
      let number = peer.pointee.registered
      appendRequest(number)
      peer.pointee.registered += step
      peer.pointee.awaited += 1
    }
    if loop.arena.count > start { loop.send(start..<loop.arena.count, to: peer.pointee.id) }
    guard peer.pointee.awaited == 0 else { return }
    let id = peer.pointee.id
    // No session's time to connect.
    peer.pointee.dueAt = nil
    becameReady(peer)
    // It has done its work, and its end is no fault of the hub's.
    peer.pointee.id = .none
    table[Int(id.slot)] = nil
    loop.abort(id, reset: true)
  }

  private func appendRequest(_ number: Int) {
    let digits = String(number)
    // A place of its own for each, 100 m apart in a square of 100 km.
    let latitude = 48 + Double(number / 1000 % 1000) * 9e-4
    let longitude = 11 + Double(number % 1000) * 1.3e-3
    let body =
      "{\"latitude\":\(decimals(latitude, 6)),\"longitude\":\(decimals(longitude, 6)),\"accuracy\":5,"
      + "\"timestamp\":\(FixTime.base)}"
    loop.arena.append(
      utf8: "POST /v1/locations?role=driver&id=fleet-\(scenario.tag)\(digits) HTTP/1.1\r\nHost: localhost\r\n")
    loop.arena.append(utf8: "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
  }

  /// Counts the answers among what came. A status line may come in two pieces.
  func answeredFleet(_ peer: PeerPointer, _ bytes: UnsafeMutableRawBufferPointer) {
    peer.pointee.head.append(contentsOf: bytes)
    var offset = 0
    while let answer = HTTPAnswer(peer.pointee.head, from: offset) {
      offset = answer.end
      peer.pointee.awaited -= 1
      guard answer.status == 200 else {
        counts.fail("the hub answered \(answer.status) to a fix over HTTP")
        break
      }
    }
    peer.pointee.head.removeFirst(offset)
    if counts.errors == 0 { registerFleet(peer) }
  }

  // MARK: Channels without news

  /// An idle session follows its part of them.
  func followQuietChannels(_ peer: PeerPointer) {
    var number = peer.pointee.number
    while number < scenario.quietChannels {
      peer.pointee.awaited += 1
      subscribe(peer, toTrip: "Q\(scenario.tag)\(number)")
      number += scenario.idle
    }
    if peer.pointee.awaited == 0 { becameReady(peer) }
  }
}

/// Where an answer ends, and its status.
struct HTTPAnswer: Equatable {
  let status: Int
  let end: Int

  /// Nil while it is incomplete. RFC 9112 §6.3: each of the hub's answers says how long its body is.
  init?(_ bytes: [UInt8], from start: Int) {
    var line = start
    var status: Int?
    var length = 0
    while let end = bytes[line...].firstIndex(of: 10) {
      let text = bytes[line..<end]
      if status == nil {
        guard text.count >= 12, let code = Int(String(decoding: text.dropFirst(9).prefix(3), as: UTF8.self)) else {
          return nil
        }
        status = code
      } else if text.count <= 1 {
        guard let status, bytes.count - end - 1 >= length else { return nil }
        self.status = status
        self.end = end + 1 + length
        return
      } else if let first = text.first, first | 0x20 == UInt8(ascii: "c") {
        let field = String(decoding: text, as: UTF8.self).lowercased()
        if field.hasPrefix("content-length:") { length = Int(field.dropFirst(15).trimmed) ?? 0 }
      }
      line = end + 1
    }
    return nil
  }
}
