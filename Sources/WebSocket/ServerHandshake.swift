// The opening handshake of a server (RFC 6455 §4.2).
//
// The caller checks the path and the credential.

public import HubBytes
public import HubHTTP

/// Why a request is refused as a WebSocket.
public enum UpgradeRefusal: Error, Equatable, Sendable {
  /// Not GET. RFC 6455 §4.2.1 item 1.
  case methodNotAllowed
  /// HTTP/1.0, which has no Upgrade. RFC 6455 §4.2.1 item 1; RFC 9110 §7.8.
  case versionTooOld
  /// A request with a body: what follows the head is ambiguous between frames and body.
  case hasBody
  /// No `Upgrade: websocket`. RFC 6455 §4.2.1 item 3.
  case upgradeMissing
  /// No `Connection: Upgrade`. RFC 6455 §4.2.1 item 4.
  case connectionMissing
  /// No key, repeated keys (RFC 6455 §11.3.1), or not 16 bytes in base64. RFC 6455 §4.2.1 item 5.
  case malformedKey
  /// No version, or repeated ones. RFC 6455 §4.2.1 item 6, §11.3.5.
  case malformedVersion
  /// A version other than 13. RFC 6455 §4.2.2 item 4.
  case unsupportedVersion
  /// Sec-WebSocket-Extensions is malformed. RFC 6455 §9.1.
  case malformedExtensions

  /// The status of the response (RFC 9110 §15).
  public var status: Status {
    switch self {
    case .methodNotAllowed: return .methodNotAllowed
    case .versionTooOld, .hasBody, .connectionMissing, .malformedKey, .malformedVersion, .malformedExtensions:
      return .badRequest
    case .upgradeMissing, .unsupportedVersion: return .upgradeRequired
    }
  }

  /// The response, with the fields that its status requires. The connection may be kept if the request had no body.
  public var response: Response {
    switch self {
    case .methodNotAllowed:
      return Response(status, fields: [OutgoingField("Allow", "GET")])  // RFC 9110 §15.5.6
    case .upgradeMissing, .unsupportedVersion:
      // RFC 9110 §15.5.22 requires Upgrade, RFC 6455 §4.2.2 item 4 the versions.
      return Response(
        status, fields: [OutgoingField("Upgrade", "websocket"), OutgoingField("Sec-WebSocket-Version", "13")])
    case .versionTooOld, .hasBody, .connectionMissing, .malformedKey, .malformedVersion, .malformedExtensions:
      return Response(status)
    }
  }
}

/// A request that may become a WebSocket.
public struct ServerHandshake: Sendable {
  /// The supported version.
  public static let version: StaticString = "13"

  private let accept: HandshakeAccept
  /// The index of the chosen subprotocol in the supported ones; nil when the client offered none of them. It then gets
  /// none, and decides whether to continue (RFC 6455 §4.1).
  public let subprotocol: Int?
  /// Whether the client offered any subprotocol.
  public let offersSubprotocols: Bool
  /// The agreed compression, if any.
  public private(set) var compression: DeflateParameters?

  /// Checks a request for everything in RFC 6455 §4.2.1 but its target and Origin (item 7, optional).
  ///
  /// `subprotocols` are the supported ones; the first in the client's order is chosen (RFC 6455 §4.1 item 10: "ordered
  /// by preference"). Names are compared case-sensitively.
  ///
  /// `compression`: the policy for offers of permessage-deflate; nil for none. Other extensions are declined.
  public init(
    _ request: RequestHead, subprotocols: [StaticString], compression: DeflatePolicy? = nil
  ) throws(UpgradeRefusal) {
    guard request.method == .get else { throw .methodNotAllowed }  // item 1
    guard request.version == .http11 else { throw .versionTooOld }  // item 1
    guard request.framing == .none else { throw .hasBody }
    let fields = request.fields  // item 2, Host, was checked by the parser (RFC 9112 §3.2)
    guard fields.contains("upgrade", token: "websocket") else { throw .upgradeMissing }  // item 3
    guard fields.contains("connection", token: "upgrade") else { throw .connectionMissing }  // item 4
    guard case .value(let version) = fields.single("sec-websocket-version") else { throw .malformedVersion }  // item 6
    guard ASCII.equals(version, ServerHandshake.version) else { throw .unsupportedVersion }
    guard case .value(let value) = fields.single("sec-websocket-key"), let key = HandshakeKey(value) else {
      throw .malformedKey  // item 5
    }
    guard let offers = ExtensionListParser.parse(fields) else { throw .malformedExtensions }  // item 9
    self.compression = compression?.response(to: offers)
    accept = key.accept
    let offered = fields.elements("sec-websocket-protocol")  // item 8
    offersSubprotocols = !offered.isEmpty
    subprotocol = ServerHandshake.choose(from: offered, subprotocols)
  }

  /// Declines compression: the client continues without it (RFC 6455 §9.1).
  public mutating func declineCompression() { compression = nil }

  /// Writes the response that opens the WebSocket (RFC 6455 §4.2.2 item 5). `subprotocols` is the list given to `init`.
  public func write(into buffer: inout ByteBuffer, subprotocols: [StaticString]) {
    buffer.append(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ")
    accept.write(into: &buffer)
    if let subprotocol {
      buffer.append("\r\nSec-WebSocket-Protocol: ")
      buffer.append(subprotocols[subprotocol])
    }
    buffer.append("\r\n")
    compression?.write(into: &buffer)
    buffer.append("\r\n")
  }

  private static func choose(from offered: [ArraySlice<UInt8>], _ supported: [StaticString]) -> Int? {
    for name in offered {
      let found = supported.firstIndex { known in
        unsafe name.elementsEqual(UnsafeBufferPointer(start: known.utf8Start, count: known.utf8CodeUnitCount))
      }
      if let found { return found }
    }
    return nil
  }
}
