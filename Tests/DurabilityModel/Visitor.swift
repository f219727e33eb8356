// Connections that nobody relies on: what hostile and broken peers do, a driver's second phone, and the request that
// puts a fence. Nobody else may notice them.
import HubBytes
import HubCore
import HubMessages
import HubWebSocket

final class Visitor {
  enum Kind: CaseIterable {
    /// Bytes that are no HTTP; half of a request, for ever.
    case garbage, halfRequest
    /// Sessions: a frame without a mask, one that is too large, messages that make no sense, pings without end, no
    /// answer to a ping.
    case unmasked, oversized, malformed, flood, silent
    /// A driver's second phone.
    case twin
    /// A request that puts a fence.
    case fence
  }

  let kind: Kind
  /// Who it says that it is.
  let actor: HubCore.Actor
  let link: Link
  /// `connected` has come.
  var isOpen = false
  private var hasSpoken = false

  init(_ kind: Kind, _ actor: HubCore.Actor, _ link: Link) {
    self.kind = kind
    self.actor = actor
    self.link = link
  }

  /// It does not speak WebSocket.
  var isPlain: Bool {
    switch kind {
    case .garbage, .halfRequest, .fence: true
    case .unmasked, .oversized, .malformed, .flood, .silent, .twin: false
    }
  }

  /// Says what its kind says in an open session.
  func speak() {
    guard isOpen else { return }
    let isFirst = !hasSpoken
    hasSpoken = true
    switch kind {
    case .unmasked: if isFirst { link.send(raw: [0x81, 0x02, 0x7B, 0x7D]) }
    case .oversized:
      // A text frame of 2^20 bytes, of which a few come.
      if isFirst { link.send(raw: [0x81, 0xFF, 0, 0, 0, 0, 0, 0x10, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]) }
    case .malformed: for _ in 0..<4 { link.send(raw: Self.text("{\"type\":1}")) }
    case .flood: for _ in 0..<60 { link.send(raw: [0x89, 0x80, 0, 0, 0, 0]) }
    case .garbage, .halfRequest, .fence, .silent, .twin: break
    }
  }

  /// A text frame, masked with zeros.
  private static func text(_ text: StaticString) -> [UInt8] {
    [0x81, 0x80 | UInt8(text.utf8CodeUnitCount), 0, 0, 0, 0]
      + UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
  }
}
