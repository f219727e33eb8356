// An echo server on the same transport, HTTP and WebSocket code as the hub, for conformance suites: every text and
// binary message comes back as it was. Its limits are those that the suites ask for.
import HubBytes
import HubDeflate
import HubHTTP
import HubSystem
import HubTransport
import HubWebSocket

/// Why an echo server does not start.
enum EchoServerError: Error {
  case start(String)
}

/// Echoes on one loop, on the thread that calls `run`.
final class EchoServer: EventLoopDelegate {
  private struct Peer: ~Copyable {
    var id = ConnectionID.none
    var head = ByteBuffer()
    var parser = RequestParser()
    var frames: FrameReader?
    /// Each peer has its own, since a client may have contexts kept here: conformance suites look at that.
    var inflater: Inflater?
    var deflater: Deflater?
    var inflateLimits = InflateLimits(messageBytes: 16 << 20, ratio: 2000)
  }

  /// 65,536 fragments and an empty last one, as the suite's cases 9.3.1 and 9.4.1 send.
  private static let limits = FrameLimits(messageBytes: 16 << 20, fragments: 65_537)

  /// All that RFC 7692 knows and zlib can do.
  private static let policy = DeflatePolicy(keepsContexts: true, windowBits: 9...15)

  private let loop: EventLoop
  private var payload = ByteBuffer()
  private let lock: PortLock
  private var peers: [UnsafeMutablePointer<Peer>?] = []

  /// Where it listens, with the real port.
  var address: SocketAddress { lock.address }

  init(host: String, port: UInt16) throws(EchoServerError) {
    guard let wanted = SocketAddress(host: host, port: port) else { throw .start("\(host) is no numeric address") }
    do throws(PortLockError) { lock = try PortLock(wanted) } catch { throw .start("\(error)") }
    var limits = EventLoopLimits()
    limits.outboxBytesPerConnection = 128 << 20
    limits.outboxBytesTotal = 1 << 30
    do throws(SystemError) {
      loop = try EventLoop(limits: limits)
      _ = try loop.listen(lock.address, reusePort: true)
    } catch {
      throw .start("\(error)")
    }
    loop.delegate = self
  }

  deinit {
    for peer in peers {
      peer?.deinitialize(count: 1)
      peer?.deallocate()
    }
  }

  /// Serves until one of `signals` comes.
  func run(until signals: [Int32]) throws(SystemError) {
    try loop.watchSignals(signals) { [unowned loop] _ in loop.stop() }
    loop.run()
  }

  func accepted(_ id: ConnectionID, from address: SocketAddress) {
    while peers.count <= Int(id.slot) { peers.append(nil) }
    let peer = peers[Int(id.slot)] ?? .allocate(capacity: 1)
    if peers[Int(id.slot)] != nil { peer.deinitialize(count: 1) }
    peer.initialize(to: Peer())
    peer.pointee.id = id
    peers[Int(id.slot)] = peer
  }

  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    guard let peer = peers[Int(id.slot)], peer.pointee.id == id else { return }
    if peer.pointee.frames != nil { return echo(peer, bytes) }
    peer.pointee.head.append(UnsafeRawBufferPointer(bytes))
    do throws(HTTPError) {
      try upgrade(peer)
    } catch {
      respond(peer, Response(refusing: error))
    }
  }

  private func upgrade(_ peer: UnsafeMutablePointer<Peer>) throws(HTTPError) {
    var parser = peer.pointee.parser
    let parsed = try peer.pointee.head.withBytes { (bytes) throws(HTTPError) in try parser.parse(bytes) }
    peer.pointee.parser = parser
    guard case .request(let request, let consumed) = parsed else { return }
    do throws(UpgradeRefusal) {
      let handshake = try ServerHandshake(request, subprotocols: [], compression: Self.policy)
      let start = loop.arena.count
      handshake.write(into: &loop.arena, subprotocols: [])
      loop.send(start..<loop.arena.count, to: peer.pointee.id)
      begin(peer, handshake.compression)
    } catch {
      return respond(peer, error.response)
    }
    peer.pointee.head.removeFirst(consumed)
    var rest = ByteBuffer()
    swap(&rest, &peer.pointee.head)
    rest.withMutableBytes { echo(peer, $0) }
  }

  private func begin(_ peer: UnsafeMutablePointer<Peer>, _ compression: DeflateParameters?) {
    peer.pointee.frames = FrameReader(role: .server, allowsCompression: compression != nil)
    guard let compression else { return }
    peer.pointee.inflater = Inflater(takesContextOver: !compression.clientNoContextTakeover)
    peer.pointee.deflater = Deflater(
      windowBits: Self.policy.compressorWindowBits(compression), level: 6, memoryLevel: 8,
      takesContextOver: !compression.serverNoContextTakeover)
  }

  private func respond(_ peer: UnsafeMutablePointer<Peer>, _ response: Response) {
    let start = loop.arena.count
    response.write(into: &loop.arena, keepsAlive: false)
    loop.send(start..<loop.arena.count, to: peer.pointee.id)
    loop.close(peer.pointee.id)
  }

  private func echo(_ peer: UnsafeMutablePointer<Peer>, _ bytes: UnsafeMutableRawBufferPointer) {
    var offset = 0
    do throws(FrameError) {
      while let event = try peer.pointee.frames!.next(in: bytes, at: &offset, limits: Self.limits) {
        switch event {
        case .message(let kind, let payload, isCompressed: false): echo(peer, kind, payload)
        case .message(let kind, let payload, isCompressed: true):
          let limits = peer.pointee.inflateLimits
          echo(peer, kind, try peer.pointee.inflater!.inflate(payload, kind, limits: limits))
        case .ping(let payload): send(peer, .pong, payload)
        case .pong: break
        case .close(let code, reason: _): return close(peer, code)
        }
      }
    } catch {
      close(peer, error.closeCode)
    }
  }

  private func echo(_ peer: UnsafeMutablePointer<Peer>, _ kind: MessageKind, _ message: UnsafeRawBufferPointer) {
    let opcode: Opcode = kind == .text ? .text : .binary
    guard peer.pointee.deflater != nil else { return send(peer, opcode, message) }
    payload.removeAll(keepingAtMost: 1 << 20)
    peer.pointee.deflater!.compress(message, into: &payload)
    let start = loop.arena.count
    payload.withBytes { FrameWriter.write(opcode, $0, isCompressed: true, into: &loop.arena) }
    loop.send(start..<loop.arena.count, to: peer.pointee.id)
  }

  private func send(_ peer: UnsafeMutablePointer<Peer>, _ opcode: Opcode, _ payload: UnsafeRawBufferPointer) {
    let start = loop.arena.count
    FrameWriter.write(opcode, payload, into: &loop.arena)
    loop.send(start..<loop.arena.count, to: peer.pointee.id)
  }

  private func close(_ peer: UnsafeMutablePointer<Peer>, _ code: CloseCode?) {
    let start = loop.arena.count
    FrameWriter.writeClose(code, into: &loop.arena)
    loop.send(start..<loop.arena.count, to: peer.pointee.id)
    loop.close(peer.pointee.id)
  }

  func connected(_ id: ConnectionID) {}
  func overflowed(_ id: ConnectionID) { loop.abort(id) }
  /// The contexts are given back at once, not with the slot's next connection.
  func closed(_ id: ConnectionID, _ cause: CloseCause) {
    guard let peer = peers[Int(id.slot)], peer.pointee.id == id else { return }
    peer.pointee.inflater = nil
    peer.pointee.deflater = nil
  }
}
