// HTTP as a test speaks it: text out, a response in, with a parser of its own.
import Foundation

struct HTTPResponse {
  var status: Int
  /// By lowercased name.
  var fields: [String: String]
  var body: [UInt8]

  var text: String { String(decoding: body, as: UTF8.self) }

  /// The body as a JSON object; empty where it is none.
  var json: [String: Any] {
    let object = try? JSONSerialization.jsonObject(with: Data(body))
    return object as? [String: Any] ?? [:]
  }

  /// `error.code` of an error body.
  var errorMessage: String? { (json["error"] as? [String: Any])?["message"] as? String }
  var errorCode: String? { (json["error"] as? [String: Any])?["code"] as? String }
}

extension RawConnection {
  /// What an upgrade is answered with.
  func statusOfUpgrade(_ target: String) throws -> Int {
    try send(UpgradeRequest(target).text)
    return try readResponse().status
  }

  /// Reads one response; what comes behind it stays for the next call.
  func readResponse(toHead: Bool = false, within seconds: Double = Deadline.patience) throws -> HTTPResponse {
    let deadline = Deadline(seconds: seconds)
    var bytes: [UInt8] = []
    var end: Int?
    while end == nil {
      let more = try receive(until: deadline, waitingFor: "an HTTP response")
      guard !more.isEmpty else { throw PeerError.ended(waitingFor: "an HTTP response") }
      bytes += more
      end = bytes.firstRange(of: Array("\r\n\r\n".utf8))?.upperBound
    }
    var response = try HTTPResponse(head: String(decoding: bytes[..<end!], as: UTF8.self))
    let length = toHead || response.status == 101 ? 0 : Int(response.fields["content-length"] ?? "0") ?? 0
    while bytes.count < end! + length {
      let more = try receive(until: deadline, waitingFor: "the body of a response")
      guard !more.isEmpty else { throw PeerError.ended(waitingFor: "the body of a response") }
      bytes += more
    }
    response.body = Array(bytes[end!..<end! + length])
    putBack(bytes[(end! + length)...])
    return response
  }
}

extension HTTPResponse {
  fileprivate init(head: String) throws {
    var lines = head.components(separatedBy: "\r\n")
    let start = lines.removeFirst().split(separator: " ", maxSplits: 2)
    guard start.count >= 2, start[0] == "HTTP/1.1", let status = Int(start[1]) else {
      throw PeerError.unexpected("not a response: \(head)")
    }
    self.init(status: status, fields: [:], body: [])
    for line in lines where !line.isEmpty {
      let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else { throw PeerError.unexpected("not a field: \(line)") }
      fields[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
    }
  }
}

/// A WebSocket upgrade, as it should be; tests take lines out or change them.
struct UpgradeRequest {
  var line: String
  /// `nil` leaves the field out.
  var fields: [(name: String, value: String?)] = [
    ("Host", "127.0.0.1"), ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
  ]

  init(_ target: String, method: String = "GET", version: String = "HTTP/1.1") {
    line = "\(method) \(target) \(version)"
  }

  /// With another value for a field, or without it.
  func with(_ name: String, _ value: String?) -> UpgradeRequest {
    var changed = self
    changed.fields.removeAll { $0.name == name }
    changed.fields.append((name, value))
    return changed
  }

  /// With one more line of a field.
  func adding(_ name: String, _ value: String) -> UpgradeRequest {
    var changed = self
    changed.fields.append((name, value))
    return changed
  }

  var text: String {
    var text = line + "\r\n"
    for case (let name, let value?) in fields { text += "\(name): \(value)\r\n" }
    return text + "\r\n"
  }
}
