// A client's side of one WebSocket (RFC 6455), from the request to the last Close frame: bytes in, events out, and
// bytes to send. It has no socket and no clock.
//
//     var socket = ClientSocket(ClientHandshake(nonce: …))
//     socket.writeRequest(host: …, target: …, into: &output)      // once TCP is connected
//     while let event = try socket.next(in: bytes, at: &offset, limits) { … }
//     socket.writeControlFrames(into: &output, using: &random)     // after every read: pongs, Close

public import HubBytes
public import HubHTTP

/// The read limits of a client's socket.
public struct ClientSocketLimits: Sendable, Equatable {
  /// Bytes of the head of the handshake's answer; beyond it: `.notHTTP`.
  public var headBytes: Int
  public var frames: FrameLimits
  public var inflate: InflateLimits
  /// Pings of one read that are answered; where there are more, the newest are (RFC 6455 §5.5.3).
  public var pongs: Int

  public init(headBytes: Int, frames: FrameLimits, inflate: InflateLimits, pongs: Int) {
    precondition(pongs >= 1)
    self.headBytes = headBytes
    self.frames = frames
    self.inflate = inflate
    self.pongs = pongs
  }
}

/// An event from the server. A payload is valid until the next call of `next`.
@safe
public enum ClientSocketEvent {
  /// The handshake is done; `subprotocol` is the index of the server's choice in the client's list.
  case opened(subprotocol: Int?)
  /// A complete message, inflated; text is valid UTF-8.
  case message(MessageKind, UnsafeRawBufferPointer)
  /// The server's Close frame: the last event. The server ends TCP (RFC 6455 §7.1.1).
  case close(CloseCode?)
}

/// Why a socket failed.
public enum ClientSocketError: Error {
  /// The answer is not HTTP. Abort TCP.
  case notHTTP(HTTPError)
  /// The answer does not open the WebSocket; `body` is what was received of its body. Abort TCP.
  indirect case handshake(HandshakeError, ResponseHead, body: [UInt8])
  /// The server broke the protocol (RFC 6455 §7.1.7). End TCP when the control frames are written.
  case frame(FrameError)
}

/// A client's side of one WebSocket.
public struct ClientSocket: ~Copyable {
  /// A handshake under way. On the heap, so that an open socket does not pay for it.
  private final class Upgrade {
    let handshake: ClientHandshake
    var parser = ResponseParser()
    var input = ByteBuffer()
    /// Interim responses so far (RFC 9110 §15.2).
    var interim = 0

    init(_ handshake: ClientHandshake) { self.handshake = handshake }

    /// Takes an interim response off the input; false for anything else.
    func takeInterim(_ parsed: ResponseParse) throws(HTTPError) -> Bool {
      guard case .response(let head, let consumed) = parsed, (100..<200).contains(head.status.code),
        head.status != .switchingProtocols
      else { return false }
      interim += 1
      guard interim <= HTTPLimits.interimResponses else {
        throw .tooManyInterimResponses(limit: HTTPLimits.interimResponses)
      }
      input.removeFirst(consumed)
      return true
    }
  }

  private enum State {
    case handshaking(Upgrade, isRequested: Bool)
    case open
    /// Input is dropped.
    case failed
  }

  private var state: State
  private var frames = FrameReader(role: .client)
  /// A Close was sent, or is to be: nothing follows it (RFC 6455 §5.5.1), and no second one.
  private var hasClosed = false
  /// A Close frame to be written, with its code unless it is empty.
  private var closeToSend: CloseCode??
  private var pongsToSend: [[UInt8]] = []
  /// Until the handshake is done the shared compression; then the one that this socket uses, or nil.
  private var compression: MessageCompression?
  /// The compressed size of the last message, in bytes; 0 where it was not compressed.
  public private(set) var compressedBytes = 0

  /// `sharing`: the compression to use where no contexts are kept, shared by a thread's sockets. Without it, and where
  /// contexts are kept, a socket that agrees to compression has its own.
  public init(_ handshake: ClientHandshake, sharing: MessageCompression? = nil) {
    state = .handshaking(Upgrade(handshake), isRequested: false)
    compression = sharing
  }

  // MARK: Opening

  /// Whether `writeRequest` is to be called.
  public var wantsRequest: Bool {
    if case .handshaking(_, isRequested: false) = state { true } else { false }
  }

  /// Appends the request; see `ClientHandshake.writeRequest`.
  public mutating func writeRequest(
    host: String, target: String, fields: [OutgoingField] = [], into buffer: inout ByteBuffer
  ) {
    guard case .handshaking(let upgrade, isRequested: false) = state else { preconditionFailure("asked for already") }
    state = .handshaking(upgrade, isRequested: true)
    upgrade.handshake.writeRequest(host: host, target: target, fields: fields, into: &buffer)
  }

  /// Whether messages are compressed.
  public var isCompressed: Bool { frames.allowsCompression }

  /// Reads the answer; nil while it is incomplete. What follows its head begins at `offset`.
  private mutating func readAnswer(
    _ upgrade: Upgrade, _ buffer: UnsafeMutableRawBufferPointer, _ offset: inout Int, _ limits: ClientSocketLimits
  ) throws(ClientSocketError) -> ClientSocketEvent? {
    unsafe upgrade.input.append(UnsafeRawBufferPointer(rebasing: buffer[offset...]))
    offset = buffer.count
    var parsed: ResponseParse
    do throws(HTTPError) {
      repeat {
        parsed = try unsafe upgrade.input.withBytes { (input) throws(HTTPError) in
          try unsafe upgrade.parser.parse(input, limits: HTTPLimits(headBytes: limits.headBytes))
        }
      } while try upgrade.takeInterim(parsed)
    } catch {
      throw .notHTTP(error)
    }
    guard case .response(let head, let consumed) = parsed else { return nil }
    // The head was incomplete before this piece, so it ends in it.
    let rest = upgrade.input.count - consumed
    do throws(HandshakeError) {
      let (subprotocol, compression) = try upgrade.handshake.check(head)
      open(compression)
      offset -= rest
      return .opened(subprotocol: subprotocol)
    } catch {
      throw unsafe .handshake(error, head, body: Array(buffer[(buffer.count - rest)...]))
    }
  }

  private mutating func open(_ agreed: DeflateParameters?) {
    state = .open
    frames = FrameReader(role: .client, allowsCompression: agreed != nil)
    let shared = compression
    compression = agreed.map { agreed in
      if let shared, shared.serves(agreed) { shared } else { MessageCompression(for: agreed, as: .client) }
    }
  }

  // MARK: Reading

  /// Reads `buffer` from `offset` on, up to the next event; nil when all is consumed. The buffer is unmasked in place,
  /// and may be reused. After an error, and after `.close`, input is dropped.
  public mutating func next(
    in buffer: UnsafeMutableRawBufferPointer, at offset: inout Int, limits: ClientSocketLimits
  ) throws(ClientSocketError) -> ClientSocketEvent? {
    do throws(ClientSocketError) {
      switch state {
      case .handshaking(let upgrade, _): return try unsafe readAnswer(upgrade, buffer, &offset, limits)
      case .open: return try unsafe readFrames(buffer, &offset, limits)
      case .failed:
        offset = buffer.count
        return nil
      }
    } catch {
      state = .failed
      offset = buffer.count
      if case .frame(let error) = error { _ = sendClose(error.closeCode) }
      throw error
    }
  }

  private mutating func readFrames(
    _ buffer: UnsafeMutableRawBufferPointer, _ offset: inout Int, _ limits: ClientSocketLimits
  ) throws(ClientSocketError) -> ClientSocketEvent? {
    do throws(FrameError) {
      while let event = try unsafe frames.next(in: buffer, at: &offset, limits: limits.frames) {
        switch event {
        case .message(let kind, let payload, isCompressed: false):
          compressedBytes = 0
          return unsafe .message(kind, payload)
        case .message(let kind, let payload, isCompressed: true):
          guard let compression else { preconditionFailure("a reader without compression refuses RSV1") }
          compressedBytes = payload.count
          return unsafe .message(kind, try compression.inflate(payload, kind, limits: limits.inflate))
        case .ping(let payload):
          if hasClosed { continue }
          if pongsToSend.count >= limits.pongs { pongsToSend.removeFirst() }
          unsafe pongsToSend.append([UInt8](payload))
        case .pong: break
        case .close(let code, reason: _):
          _ = sendClose(code)  // the same code, without the reason (RFC 6455 §5.5.1)
          return .close(code)
        }
      }
      return nil
    } catch {
      throw .frame(error)
    }
  }

  // MARK: Writing

  /// Whether messages may still be sent: nothing follows a Close frame (RFC 6455 §5.5.1).
  public var maySend: Bool {
    if case .open = state { !hasClosed } else { false }
  }

  /// Whether `writeControlFrames` has something to write.
  public var hasControlFrames: Bool { closeToSend != nil || !pongsToSend.isEmpty }

  /// Completes the message whose payload begins at `payload` (`FrameWriter.begin(as: .client, in:)`): compressed where
  /// that was agreed on and, without contexts, if it has `compressedBytes` or more.
  public mutating func finish(
    _ kind: MessageKind, payloadAt payload: Int, compressedBytes: Int, mask: MaskKey, in buffer: inout ByteBuffer
  ) {
    let isCompressed =
      compression?.compress(payloadAt: payload, minimumBytes: compressedBytes, in: &buffer) ?? false
    let start = FrameWriter.finish(
      kind == .text ? .text : .binary, payloadAt: payload, isCompressed: isCompressed, mask: mask, in: &buffer)
    // The header is shorter than its room. The gap is closed, so that a flush is one run of bytes.
    let room = payload - FrameWriter.maximumClientHeader
    let length = buffer.count - start
    unsafe buffer.withMutableBytes { bytes in
      unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[room..<(room + length)])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[start..<(start + length)]))
    }
    buffer.truncate(to: room + length)
  }

  /// Begins the closing handshake (RFC 6455 §7.1.2); false where it has begun.
  public mutating func close(_ code: CloseCode) -> Bool {
    precondition(code.isValidOnWire)
    return sendClose(code)
  }

  /// Notes a Close frame to be written; false where there has been one.
  private mutating func sendClose(_ code: CloseCode?) -> Bool {
    if hasClosed { return false }
    hasClosed = true
    closeToSend = .some(code)
    return true
  }

  /// Appends the pongs that are due, and then the Close frame. Each has a new mask (RFC 6455 §5.3).
  public mutating func writeControlFrames(
    into buffer: inout ByteBuffer, using random: inout some RandomNumberGenerator
  ) {
    for pong in pongsToSend {
      unsafe pong.withUnsafeBytes { unsafe FrameWriter.write(.pong, $0, mask: .random(using: &random), into: &buffer) }
    }
    pongsToSend = []
    guard let code = closeToSend else { return }
    FrameWriter.writeClose(code, mask: .random(using: &random), into: &buffer)
    closeToSend = nil
  }
}
