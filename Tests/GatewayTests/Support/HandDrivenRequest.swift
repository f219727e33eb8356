// A request to a hub whose turns a test gives by hand.
import HubBytes
import HubTransport

/// A request, and what has come of its response.
final class HandDrivenRequest: EventLoopDelegate {
  private(set) var text = ""
  private(set) var isClosed = false
  private let loop: EventLoop
  private var id = ConnectionID.none

  init(_ hub: HandDrivenHub, _ target: String, method: String = "GET", body: String = "") throws {
    let clock = hub.clock
    loop = try EventLoop(clock: { clock.reading })
    loop.delegate = self
    id = try loop.connect(hub.address)
    let start = loop.arena.count
    let length = method == "GET" ? "" : "Content-Length: \(body.utf8.count)\r\n"
    loop.arena.append(utf8: "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\n\(length)\r\n\(body)")
    loop.send(start..<loop.arena.count, to: id)
    ownTurn()
    ownTurn()
  }

  func ownTurn() { loop.runTurn(timeoutMilliseconds: 0) }

  func abort() {
    loop.abort(id)
    ownTurn()
  }

  var status: String { String(text.prefix(12).suffix(3)) }

  /// The body, once it is there.
  var body: String? {
    guard let end = text.firstRange(of: "\r\n\r\n"), let length = text.firstMatch(of: /Content-Length: (\d+)/) else {
      return nil
    }
    let body = text[end.upperBound...]
    return body.utf8.count == Int(length.1) ? String(body) : nil
  }

  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    text += String(decoding: bytes, as: UTF8.self)
  }
  func connected(_ id: ConnectionID) {}
  func overflowed(_ id: ConnectionID) {}
  func closed(_ id: ConnectionID, _ cause: CloseCause) { isClosed = true }
}
