// The opening handshake of a server (RFC 6455 §4.2): a checked request in, a decision out.
//
// Whether the path exists and the credential is good is decided by whoever asks; this is about the protocol only.

public import HubBytes
public import HubHTTP

/// Why a request cannot become a WebSocket.
public enum UpgradeRefusal: Error, Equatable, Sendable {
  /// Not GET. RFC 6455 §4.2.1 item 1.
  case methodNotAllowed
  /// HTTP/1.0, which has no Upgrade. RFC 6455 §4.2.1 item 1; RFC 9110 §7.8.
  case versionTooOld
  /// A request with a body: what follows the head would be read as frames by one side and as a body by the other.
  case hasBody
  /// No `Upgrade: websocket`. RFC 6455 §4.2.1 item 3.
  case upgradeMissing
  /// No `Connection: Upgrade`. RFC 6455 §4.2.1 item 4.
  case connectionMissing
  /// No key, more than one (RFC 6455 §11.3.1), or one that is not 16 bytes in base64. RFC 6455 §4.2.1 item 5.
  case malformedKey
  /// No version, or more than one. RFC 6455 §4.2.1 item 6, §11.3.5.
  case malformedVersion
  /// Another version than 13. RFC 6455 §4.2.2 item 4.
  case unsupportedVersion
  /// Sec-WebSocket-Extensions does not fit its grammar. RFC 6455 §9.1.
  case malformedExtensions

  public var status: Status {
    switch self {
    case .methodNotAllowed: return .methodNotAllowed
    case .versionTooOld, .hasBody, .connectionMissing, .malformedKey, .malformedVersion, .malformedExtensions:
      return .badRequest
    case .upgradeMissing, .unsupportedVersion: return .upgradeRequired
    }
  }

  /// The answer, with the fields that its status asks for. The connection may be kept if the request had no body.
  public var response: Response {
    switch self {
    case .methodNotAllowed:
      return Response(status, fields: [OutgoingField("Allow", "GET")])  // RFC 9110 §15.5.6
    case .upgradeMissing, .unsupportedVersion:
      // RFC 9110 §15.5.22 wants Upgrade, RFC 6455 §4.2.2 item 4 the versions.
      return Response(
        status, fields: [OutgoingField("Upgrade", "websocket"), OutgoingField("Sec-WebSocket-Version", "13")])
    case .versionTooOld, .hasBody, .connectionMissing, .malformedKey, .malformedVersion, .malformedExtensions:
      return Response(status)
    }
  }
}

/// A request that may become a WebSocket.
public struct ServerHandshake: Sendable {
  /// The version that this module speaks.
  public static let version: StaticString = "13"

  private let accept: HandshakeAccept
  /// The chosen one of the supported subprotocols, by its place in the list; nil when the client asked for none of
  /// them. It is then told of none, and decides itself whether it goes on (RFC 6455 §4.1).
  public let subprotocol: Int?
  /// Whether the client asked for any subprotocol.
  public let offersSubprotocols: Bool
  /// What was agreed on about compression; nil for none.
  public private(set) var compression: DeflateParameters?

  /// Checks a request for everything in RFC 6455 §4.2.1 but its target and Origin (item 7, optional).
  ///
  /// `subprotocols` are those this server speaks; of those that the client asks for the first in the client's order is
  /// chosen (RFC 6455 §4.1 item 10: "ordered by preference"). Their names are compared as they are, case and all.
  ///
  /// `compression`: what is taken of the client's offers of permessage-deflate; nil for none. Other extensions are not
  /// known here and so declined.
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

  /// Declines the client's offers of compression: it then goes on uncompressed (RFC 6455 §9.1).
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
