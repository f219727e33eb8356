// The opening handshake of a client (RFC 6455 §4.1): the request out, the response checked.

public import HubBytes
public import HubHTTP

/// Why a response does not open a WebSocket. RFC 6455 §4.1: the client must fail the connection.
public enum HandshakeError: Error, Equatable, Sendable {
  /// A status other than 101; fields such as Retry-After are in the head. Item 1.
  case refused(Status)
  /// No `Upgrade: websocket`. Item 2.
  case upgradeMissing
  /// No `Connection: Upgrade`. Item 3.
  case connectionMissing
  /// `Sec-WebSocket-Accept` is missing, repeated or wrong. Item 4.
  case acceptMismatch
  /// An extension or parameter that was not offered, or that is invalid. Item 5; RFC 7692 §5.2.
  case unexpectedExtension
  /// A subprotocol that was not offered, or more than one. Item 6.
  case unexpectedSubprotocol
}

/// The client's side of a handshake under way.
public struct ClientHandshake: Sendable {
  private let key: HandshakeKey
  private let subprotocols: [String]
  private let compression: DeflateParameters?

  /// `nonce`: 16 random bytes for this connection. `subprotocols` in order of preference, each a token. `compression`:
  /// the offer of permessage-deflate, if any; `check` has the result.
  public init(nonce: (UInt64, UInt64), subprotocols: [String] = [], compression: DeflateParameters? = nil) {
    precondition(subprotocols.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy(ASCII.isTokenByte) })
    key = HandshakeKey(nonce: nonce)
    self.subprotocols = subprotocols
    self.compression = compression
  }

  /// Writes the request. `host` is the URI's authority, with the port unless it is the scheme's default; `target` its
  /// path and query, percent-encoded, beginning with `/`. Control bytes and spaces in them are a programmer's error.
  /// `fields` are added unchanged: Authorization, User-Agent.
  public func writeRequest(
    host: String, target: String, fields: [OutgoingField] = [], into buffer: inout ByteBuffer
  ) {
    precondition(target.utf8.first == 0x2F && (host + target).utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
    buffer.append("GET ")
    buffer.append(utf8: target)
    buffer.append(" HTTP/1.1\r\nHost: ")
    buffer.append(utf8: host)
    buffer.append("\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ")
    key.write(into: &buffer)
    buffer.append("\r\n")
    if !subprotocols.isEmpty {
      buffer.append("Sec-WebSocket-Protocol: ")
      buffer.append(utf8: subprotocols.joined(separator: ", "))
      buffer.append("\r\n")
    }
    compression?.write(into: &buffer)
    for field in fields { field.write(into: &buffer) }
    buffer.append("\r\n")
  }

  /// Checks the response and gives the chosen subprotocol by its index in the list, if any, and the compression that
  /// was agreed to, if any. Frames follow the head.
  public func check(
    _ response: ResponseHead
  ) throws(HandshakeError) -> (subprotocol: Int?, compression: DeflateParameters?) {
    guard response.status == .switchingProtocols else { throw .refused(response.status) }  // item 1
    let fields = response.fields
    guard fields.contains("upgrade", token: "websocket") else { throw .upgradeMissing }  // item 2
    guard fields.contains("connection", token: "upgrade") else { throw .connectionMissing }  // item 3
    guard case .value(let accept) = fields.single("sec-websocket-accept"), key.accept.matches(accept) else {
      throw .acceptMismatch  // item 4
    }
    let compression = try agreedCompression(response)  // item 5
    switch fields.single("sec-websocket-protocol") {  // item 6
    case .absent: return (nil, compression)
    case .repeated: throw .unexpectedSubprotocol
    case .value(let name):
      guard let chosen = subprotocols.firstIndex(where: { name.elementsEqual($0.utf8) }) else {
        throw .unexpectedSubprotocol
      }
      return (chosen, compression)
    }
  }

  /// The compression that a response agrees to, if any. RFC 6455 §4.1 item 5; RFC 7692 §5.2.
  private func agreedCompression(_ response: ResponseHead) throws(HandshakeError) -> DeflateParameters? {
    guard let elements = ExtensionListParser.parse(response.fields) else { throw .unexpectedExtension }
    guard let element = elements.first else { return nil }
    guard let offer = compression, elements.count == 1, let agreed = DeflateParameters(element),
      agreed.answers(offer)
    else { throw .unexpectedExtension }
    return agreed
  }
}
