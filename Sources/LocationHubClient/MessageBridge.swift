// Between a `ClientSession`, which speaks WebSocket in bytes (RFC 6455), and a transport of complete messages, such as
// URLSession: the far end of the session's byte stream.
//
// So both kinds of transport use one session, and this translation, of some microseconds a message, is tested where
// there is no URLSession. It has no I/O.
import HubBytes
import HubHTTP
import HubMessages
import HubWebSocket

/// An action of the transport.
enum BridgeAction: Equatable {
  /// Open a WebSocket: the subprotocols in order, and the value of Authorization.
  case open(subprotocols: [String], authorization: String?)
  case text(String)
  case binary([UInt8])
  /// Close with this code.
  case close(UInt16)
  /// No hub accepts such a request: act as if it had been refused with HTTP 431.
  case refuse
}

/// One connection. Not thread-safe.
final class MessageBridge {
  private var input = ByteBuffer()
  private var parser = RequestParser()
  private var request: RequestHead?
  private var frames = FrameReader(role: .server)

  // MARK: From the session

  /// Takes what the session has written, and gives the transport's actions.
  func take(_ bytes: borrowing ByteBuffer) -> [BridgeAction] {
    guard !bytes.isEmpty else { return [] }
    guard request != nil else { return readRequest(bytes).map { [$0] } ?? [] }
    var actions: [BridgeAction] = []
    var copy = ByteBuffer()
    unsafe bytes.withBytes { unsafe copy.append($0) }
    do throws(FrameError) {
      try unsafe copy.withMutableBytes { (bytes) throws(FrameError) in
        var offset = 0
        while let event = try unsafe frames.next(in: bytes, at: &offset, limits: MessageBridge.frameLimits) {
          switch event {
          case .message(.text, let payload, isCompressed: _):
            unsafe actions.append(.text(String(decoding: payload, as: UTF8.self)))
          case .message(.binary, let payload, isCompressed: _): unsafe actions.append(.binary([UInt8](payload)))
          // The transport answers the hub's pings by itself; the session never sees them.
          case .ping, .pong: break
          case .close(let code, reason: _): actions.append(.close(code?.rawValue ?? 1000))
          }
        }
      }
    } catch {
      preconditionFailure("our own session writes frames as RFC 6455 has them: \(error)")
    }
    return actions
  }

  private func readRequest(_ bytes: borrowing ByteBuffer) -> BridgeAction? {
    unsafe bytes.withBytes { unsafe input.append($0) }
    do throws(HTTPError) {
      let parsed = try unsafe input.withBytes { (bytes) throws(HTTPError) in
        try unsafe parser.parse(bytes, limits: MessageBridge.headLimits)
      }
      guard case .request(let head, consumed: _) = parsed else { return nil }
      request = head
      let subprotocols = head.fields.elements("sec-websocket-protocol").map { String(decoding: $0, as: UTF8.self) }
      return .open(subprotocols: subprotocols, authorization: head.fields.string("authorization"))
    } catch {
      // Its token, or its URL, is too long.
      return .refuse
    }
  }

  // MARK: To the session

  /// The transport has opened the WebSocket: gives the 101 that the session waits for.
  func opened(subprotocol: String?) -> [UInt8] {
    guard let request else { preconditionFailure("nothing was asked for") }
    let chosen = Subprotocol.allCases.filter { "\($0.name)" == subprotocol }.map(\.name)
    var answer = ByteBuffer()
    do throws(UpgradeRefusal) {
      try ServerHandshake(request, subprotocols: chosen).write(into: &answer, subprotocols: chosen)
    } catch {
      preconditionFailure("our own session asks for an upgrade as RFC 6455 has it: \(error)")
    }
    return answer.array()
  }

  /// The hub has refused the WebSocket.
  func refused(status: Int, retryAfter: String?) -> [UInt8] {
    let patience = retryAfter.map { "Retry-After: \($0)\r\n" } ?? ""
    return Array("HTTP/1.1 \(status) Refused\r\n\(patience)Content-Length: 0\r\n\r\n".utf8)
  }

  func received(text: String) -> [UInt8] { frame(.text, Array(text.utf8)) }
  func received(binary: [UInt8]) -> [UInt8] { frame(.binary, binary) }

  /// The hub has closed the WebSocket, with this code; 1005 where it had none.
  func closed(_ code: UInt16) -> [UInt8] {
    var buffer = ByteBuffer()
    FrameWriter.writeClose(CloseCode(code).isValidOnWire ? CloseCode(code) : nil, into: &buffer)
    return buffer.array()
  }

  private func frame(_ opcode: Opcode, _ payload: [UInt8]) -> [UInt8] {
    var buffer = ByteBuffer()
    unsafe payload.withUnsafeBytes { unsafe FrameWriter.write(opcode, $0, into: &buffer) }
    return buffer.array()
  }
}
