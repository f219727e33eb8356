// What one message costs a hub: sends it on a session that does nothing else, waits until the hub rests, and reads the
// CPU time that its threads took, to the nanosecond, from the kernel's own count (/proc/PID/task/*/schedstat). That has
// all of it: reading, inflating, parsing, the hub's work over however many turns, the answer and its compression, and
// the system calls.
import HubBytes
import HubCommandLine
import HubDeflate
import HubLoadTestKit
import HubSystem
import HubTransport
import HubWebSocket

final class HubProbe: EventLoopDelegate {
  /// A connection to the hub, and how far it is.
  private final class Link {
    var id = ConnectionID.none
    var frames = FrameReader(role: .client, allowsCompression: true)
    var head: [UInt8] = []
    var isOpen = false
    var isGone = true
    /// Messages of the hub.
    var answers = 0
  }

  private enum LinkKind: Int, CaseIterable {
    case json, binary
  }

  private static let patience: Int64 = 500_000_000

  private let loop: EventLoop
  private let hub: HubProcess
  private var links = LinkKind.allCases.map { _ in Link() }
  private let crowd: Crowd
  private var deflater = Deflater(windowBits: 12, level: 6, memoryLevel: 8, takesContextOver: false)
  private var sequence = 0

  init(_ hub: HubProcess) throws(LoadTestError) {
    self.hub = hub
    crowd = try Crowd(hub.address)
    do throws(SystemError) { loop = try EventLoop() } catch { throw .failed("no event loop: \(error)") }
    loop.delegate = self
  }

  private var now: Int64 { ClockReading.read().uptimeNanoseconds }

  /// µs of CPU that the hub takes for the message, the mean of `count`, each sent when the one before was answered.
  func cost(of message: DearMessage, count: Int) throws(LoadTestError) -> Double {
    try crowd.keep()
    let kind = message.carrier == .binary ? LinkKind.binary : .json
    try connect(kind)
    let frame = message.frame(&deflater)
    try rest()
    let before = try cpu()
    var sent = 0
    while sent < count, links[kind.rawValue].isOpen {
      let answers = links[kind.rawValue].answers
      let start = loop.arena.count
      loop.arena.append(frame)
      loop.send(start..<loop.arena.count, to: links[kind.rawValue].id)
      wait { !links[kind.rawValue].isOpen || links[kind.rawValue].answers > answers }
      sent += 1
    }
    try rest()
    return (try cpu() - before) * 1e6 / Double(max(1, sent))
  }

  // MARK: Waiting

  private func wait(until isThere: () -> Bool) {
    let end = now + Self.patience
    while !isThere(), now < end { loop.runTurn(timeoutMilliseconds: 1) }
  }

  /// Returns when the hub does nothing any more: its threads took no time for two milliseconds.
  private func rest() throws(LoadTestError) {
    let end = now + Self.patience
    var last = try cpu()
    var calm = 0
    while calm < 2, now < end {
      loop.runTurn(timeoutMilliseconds: 1)
      let next = try cpu()
      calm = next - last < 5e-6 ? calm + 1 : 0
      last = next
    }
  }

  private func cpu() throws(LoadTestError) -> Double {
    if let ending = hub.ending { throw .failed("the hub ended \(ending)") }
    guard let seconds = hub.facts.cpu?.exact else {
      throw .failed("the kernel does not say what CPU time the hub takes")
    }
    return seconds
  }

  // MARK: Connections

  private func connect(_ kind: LinkKind) throws(LoadTestError) {
    if links[kind.rawValue].isOpen { return }
    links[kind.rawValue] = Link()
    links[kind.rawValue].isGone = false
    do throws(SystemError) {
      links[kind.rawValue].id = try loop.connect(hub.address)
    } catch {
      throw .failed("no connection: \(error)")
    }
    wait { links[kind.rawValue].isGone || links[kind.rawValue].answers > 0 }
    guard links[kind.rawValue].isOpen else { throw .failed("the hub does not let the probe in") }
  }

  private func index(_ id: ConnectionID) -> Int? { links.firstIndex { $0.id == id } }

  func connected(_ id: ConnectionID) {
    guard let index = index(id) else { return }
    let isBinary = index == LinkKind.binary.rawValue
    sequence += 1
    let handshake = ClientHandshake(
      nonce: (UInt64(sequence), 0xDEA7), subprotocols: isBinary ? ["locationhub.v1.binary"] : [],
      compression: isBinary ? nil : .withoutContexts)
    let start = loop.arena.count
    handshake.writeRequest(
      host: hub.address.description, target: "/v1/ws?role=rider&id=insider", into: &loop.arena)
    loop.send(start..<loop.arena.count, to: id)
  }

  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    guard let index = index(id) else { return }
    if links[index].isOpen { return countMessages(index, bytes) }
    let before = links[index].head.count
    links[index].head.append(contentsOf: bytes)
    guard let end = links[index].head.firstRange(of: Array("\r\n\r\n".utf8)) else { return }
    guard links[index].head.starts(with: "HTTP/1.1 101".utf8) else { return loop.abort(id) }
    links[index].isOpen = true
    countMessages(index, UnsafeMutableRawBufferPointer(rebasing: bytes[(end.upperBound - before)...]))
  }

  private func countMessages(_ index: Int, _ bytes: UnsafeMutableRawBufferPointer) {
    var offset = 0
    do throws(FrameError) {
      while let event = try links[index].frames.next(in: bytes, at: &offset, limits: FrameLimits(messageBytes: 1 << 22))
      {
        if case .message = event { links[index].answers += 1 }
      }
    } catch {
      loop.abort(links[index].id)
    }
  }

  func closed(_ id: ConnectionID, _ cause: CloseCause) {
    guard let index = index(id) else { return }
    links[index].isOpen = false
    links[index].isGone = true
  }

  func overflowed(_ id: ConnectionID) { loop.abort(id) }
}
