// Server-Sent Events as a test reads them: a reader of its own, by the HTML standard's section "Server-sent events".
import Foundation

/// An event of a stream.
struct StreamedEvent {
  /// What `EventSource` would send back if the stream ended behind it.
  var id: String
  var message: HubMessage
}

final class EventStreamReader {
  let connection: RawConnection
  let head: HTTPResponse
  private(set) var retry: Int?
  private(set) var comments = 0
  private(set) var lastID: String
  private var bytes: [UInt8] = []

  /// Opens a stream; `head` says how it was answered.
  init(port: UInt16, _ target: String, lastEventID: String? = nil, receiveBuffer: Int32? = nil) throws {
    connection = try RawConnection(port: port, receiveBuffer: receiveBuffer)
    lastID = lastEventID ?? ""
    let field = lastEventID.map { "Last-Event-ID: \($0)\r\n" } ?? ""
    try connection.send("GET \(target) HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\(field)\r\n")
    head = try connection.readResponse()
  }

  deinit { connection.close() }

  /// The next event; nil at the end of the stream, where an event that is not complete does not count.
  func next() throws -> StreamedEvent? {
    var (data, id): (String?, String) = (nil, lastID)
    while let line = try line() {
      if line.isEmpty {
        guard let text = data else { continue }
        lastID = id
        return StreamedEvent(id: id, message: try HubMessage(Array(text.utf8)))
      }
      let halves = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      let value = halves.count < 2 ? "" : String(halves[1].first == " " ? halves[1].dropFirst() : halves[1])
      switch halves[0] {
      case "": comments += 1
      case "data": data = (data.map { $0 + "\n" } ?? "") + value
      case "id": id = value
      case "retry": retry = Int(value)
      default: throw PeerError.unexpected("not a field of a stream: \(line)")
      }
    }
    return nil
  }

  /// The next event, which must be of this type.
  func receive(_ type: String) throws -> StreamedEvent {
    guard let event = try next() else { throw PeerError.ended(waitingFor: type) }
    guard event.message.type == type else { throw PeerError.unexpected("not \(type): \(event.message.text)") }
    return event
  }

  private func line() throws -> String? {
    while true {
      if let end = bytes.firstIndex(of: 0x0A) {
        defer { bytes.removeFirst(end + 1) }
        return String(decoding: bytes[..<end], as: UTF8.self)
      }
      let more = try connection.receive(waitingFor: "a line of a stream")
      if more.isEmpty { return nil }
      bytes += more
    }
  }
}
