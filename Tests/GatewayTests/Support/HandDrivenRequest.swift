// A request to a hub whose turns a test gives by hand.
import HubBytes
import HubTransport

/// A request, and what has come of its response.
final class HandDrivenRequest: EventLoopDelegate {
  private(set) var bytes: [UInt8] = []
  private(set) var isClosed = false
  private let loop: EventLoop
  private var id = ConnectionID.none

  private let isHead: Bool

  init(
    _ hub: HandDrivenHub, _ target: String, method: String = "GET", body: String = "", fields: String = "",
    version: String = "1.1", announcing length: Int? = nil
  ) throws {
    isHead = method == "HEAD"
    let clock = hub.clock
    loop = try EventLoop(clock: { clock.reading })
    loop.delegate = self
    id = try loop.connect(hub.address)
    let hasLength = method != "GET" && !isHead && !fields.contains("Transfer-Encoding: chunked")
    let field = hasLength ? "Content-Length: \(length ?? body.utf8.count)\r\n" : ""
    send("\(method) \(target) HTTP/\(version)\r\nHost: localhost\r\n\(fields)\(field)\r\n\(body)")
    ownTurn()
  }

  func send(_ text: String) { send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) {
    let start = loop.arena.count
    loop.arena.append(bytes)
    loop.send(start..<loop.arena.count, to: id)
    ownTurn()
  }

  func ownTurn() { loop.runTurn(timeoutMilliseconds: 0) }

  func abort() {
    loop.abort(id)
    ownTurn()
  }

  var text: String { String(decoding: bytes, as: UTF8.self) }

  /// What came behind the head.
  var rawBody: [UInt8] {
    bytes.firstRange(of: Array("\r\n\r\n".utf8)).map { Array(bytes[$0.upperBound...]) } ?? []
  }

  /// What the chunks of the body hold (RFC 9112 §7.1).
  var dechunked: [UInt8] {
    var (rest, body) = (rawBody[...], [UInt8]())
    while let end = rest.firstRange(of: Array("\r\n".utf8)),
      let size = Int(String(decoding: rest[..<end.lowerBound], as: UTF8.self), radix: 16), size > 0
    {
      body += rest[end.upperBound...].prefix(size)
      rest = rest[end.upperBound...].dropFirst(size + 2)
    }
    return body
  }

  /// Whether all of the answer is there.
  var isComplete: Bool {
    guard text.contains("\r\n\r\n") else { return false }
    if isHead { return true }
    if text.contains("Transfer-Encoding: chunked\r\n") { return bytes.suffix(5) == Array("0\r\n\r\n".utf8)[...] }
    return text.firstMatch(of: /Content-Length: (\d+)/).flatMap { Int($0.1) } == rawBody.count
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
    self.bytes += bytes
  }
  func connected(_ id: ConnectionID) {}
  func overflowed(_ id: ConnectionID) {}
  func closed(_ id: ConnectionID, _ cause: CloseCause) { isClosed = true }
}
