// Two loops with TLS between them, and one end of TLS held in the hand: its bytes may be cut, damaged and late.

import CHubOpenSSL
import HubBytes
import HubTestCertificates
import Testing

@testable import HubTransport

let authority = TestAuthority()

func makeServer(
  hosts: [String] = ["localhost", "127.0.0.1"], seconds: ClosedRange<Int> = -3600...86_400
) throws -> TLSServer {
  let (certificate, key) = authority.issue(for: hosts, seconds: seconds)
  return try TLSServer([TLSCertificate(certificate: certificate, key: key)])
}

/// A client that trusts the tests' authority and speaks one version only.
func makeClient(_ version: Int32? = nil) throws -> TLSClient {
  let client = try TLSClient(trusting: authority.pem)
  if let version {
    SSL_CTX_ctrl(client.context.raw, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(version), nil)
    SSL_CTX_ctrl(client.context.raw, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(version), nil)
  }
  return client
}

let tlsVersions = [TLS1_2_VERSION, TLS1_3_VERSION]

extension Pair {
  /// Both loops, with a listener that speaks TLS.
  convenience init(
    tls server: TLSServer, server serverLimits: EventLoopLimits = EventLoopLimits(),
    client clientLimits: EventLoopLimits = EventLoopLimits(), clock: HandClock = HandClock()
  ) throws {
    try self.init(server: serverLimits, client: clientLimits, clock: clock)
    address = try self.server.listen(.loopback(port: 0), tls: server)
  }

  /// A connection whose handshake is done at both ends.
  func connect(_ peer: TLSPeer) throws -> (atClient: ConnectionID, atServer: ConnectionID) {
    let before = atServer.accepted.count
    let done = server.counters.tlsHandshakes
    let id = try client.connect(address, tls: peer)
    turn(until: { atClient.connected.contains(id) && server.counters.tlsHandshakes > done })
    return (id, atServer.accepted[before])
  }

  /// Why a connection with this peer does not come about; nil if it does.
  func refusal(_ peer: TLSPeer) throws -> CloseCause? {
    let id = try client.connect(address, tls: peer)
    turn(until: { atClient.connected.contains(id) || atClient.closed[id] != nil })
    return atClient.closed[id]
  }
}

/// A client's TLS in memory.
final class HeldClient {
  private var table = TLSTable()
  private let buffers: UnsafeMutablePointer<TLSBuffers>
  private let stream: UnsafeMutablePointer<TLSStream>
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 * 1024, alignment: 16)
  private(set) var plaintext: [UInt8] = []
  private(set) var end = TLSStream.End.none

  init(_ peer: TLSPeer) {
    buffers = table.buffers(EventLoopLimits())
    table.insert(TLSStream(peer, buffers), at: 0)
    stream = table.pointer(0)
  }

  deinit { buffer.deallocate() }

  var isSecured: Bool { stream.pointee.isSecured }

  /// The first flight.
  func start() -> [UInt8] {
    let failure = stream.pointee.start()
    #expect(failure == nil)
    return takeOutput()
  }

  /// Takes what the server sent; gives what is to be sent for it.
  func take(_ bytes: [UInt8]) -> [UInt8] {
    var rest = bytes[...]
    while !rest.isEmpty, end == .none {
      let piece = rest.prefix(buffers.pointee.input.count)
      rest = rest.dropFirst(piece.count)
      buffers.pointee.input.copyBytes(from: piece)
      buffers.pointee.offer(piece.count)
      let (count, _, end) = stream.pointee.open(into: buffer, now: 0)
      plaintext += buffer[..<count]
      self.end = end
    }
    return takeOutput()
  }

  func seal(_ bytes: [UInt8]) -> [UInt8] {
    let sealed = bytes.withUnsafeBytes { stream.pointee.seal($0) }
    #expect(sealed.failure == nil && sealed.count == bytes.count)
    return takeOutput()
  }

  func goodbye() -> [UInt8] {
    let isSaid = stream.pointee.sealGoodbye()
    #expect(isSaid)
    return takeOutput()
  }

  /// New keys, and the wish that the server changes its own, too.
  func keyUpdate() -> [UInt8] {
    let ssl = stream.pointee.ssl
    #expect(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) == 1)
    #expect(SSL_do_handshake(ssl) == 1)
    return takeOutput()
  }

  /// Begins a handshake within the session, which TLS 1.2 has (RFC 5246 §7.4.1.2).
  func renegotiation() -> [UInt8] {
    let ssl = stream.pointee.ssl
    SSL_clear_options(ssl, UInt64(1) << 30)  // SSL_OP_NO_RENEGOTIATION, a macro with parameters
    #expect(SSL_renegotiate(ssl) == 1)
    #expect(SSL_do_handshake(ssl) == -1, "it waits for the server")
    return takeOutput()
  }

  private func takeOutput() -> [UInt8] {
    defer { buffers.pointee.output.removeAll() }
    return buffers.pointee.output.array()
  }
}

/// A TCP connection of the pair's client loop whose TLS is held in the hand.
final class HeldConnection {
  let pair: Pair
  let held: HeldClient
  let atClient: ConnectionID
  let atServer: ConnectionID
  /// Bytes of `received` at the client that were given to `held` already.
  private var taken = 0

  init(_ pair: Pair, _ peer: TLSPeer) throws {
    self.pair = pair
    held = HeldClient(peer)
    (atClient, atServer) = try pair.connect()
  }

  func send(_ bytes: [UInt8]) {
    if !bytes.isEmpty { pair.atClient.send(bytes, to: atClient) }
  }

  /// What the server sent since the last time.
  func takeReceived() -> [UInt8] {
    let all = pair.atClient.received[atClient] ?? []
    defer { taken = all.count }
    return Array(all[taken...])
  }

  /// Passes on what the server sent, and back what it makes the client send, until `condition` holds.
  func exchange(until condition: () -> Bool) {
    pair.turn(until: {
      send(held.take(takeReceived()))
      return condition()
    })
  }

  func shakeHands() {
    let done = pair.server.counters.tlsHandshakes
    send(held.start())
    exchange(until: { held.isSecured && pair.server.counters.tlsHandshakes > done })
  }

  var causeAtServer: CloseCause? { pair.atServer.closed[atServer] }
}
