// 10,000 clients that lose one hub in the same moment come back to it evenly, whatever cut them off: no hub is stormed
// by its own clients.
import HubBytes
import HubMessages
import HubWebSocket
import Testing

@testable import HubClientCore

@Suite struct ReturnTests {
  /// What ends all connections at once.
  enum Cut: CustomTestStringConvertible, CaseIterable {
    /// The hub goes away, or is too full; the client reads too slowly.
    case goingAway, tryAgainLater, slowConsumer
    /// A proxy that is started anew (1012), and a code that nobody knows.
    case restarting, unknown
    /// A close frame without a code, the end of TCP without any, and silence.
    case withoutCode, lost, silent

    var testDescription: String { "\(self)" }
  }

  private static let clients = 10_000
  private static let now = Moment(uptime: 1_000_000_000, timestamp: Timestamp(milliseconds: 1_763_680_000_000))

  /// What a client makes of such an end of a connection that stood.
  private func cause(of cut: Cut) throws -> DisconnectCause {
    let stage = try Stage()
    try stage.open()
    switch cut {
    case .goingAway: stage.sayClose(1001)
    case .tryAgainLater: stage.sayClose(1013)
    case .slowConsumer: stage.sayClose(4413)
    case .restarting: stage.sayClose(1012)
    case .unknown: stage.sayClose(4999)
    case .withoutCode: stage.frame(.close, [])
    case .lost: break
    case .silent: while try stage.flush() != .abort { try stage.reachDeadline() }
    }
    try stage.flush()
    return stage.session.transportEnded(stage.now).cause
  }

  /// Seconds from the cut until a client has reached a hub that is away for so long, and its first delay. It begins
  /// where the connection is about to end, without the handshake that brought it there.
  private func comeback(_ cause: DisconnectCause, outage: Double, seed: Int) throws -> (arrival: Double, delay: Double)
  {
    var configuration = ClientConfiguration(url: try HubURL("ws://127.0.0.1:8080?role=driver&id=D1"))
    configuration.seed = UInt64(seed)
    let session = ClientSession(configuration)
    session.phase = .closing(.init(connection: nil, cause: cause, until: .max))
    var now = Self.now
    var end = session.transportEnded(now)
    guard case .retry(let delay) = end.next else { throw NoReturn(end: end) }
    while true {
      now.uptime = try #require(session.deadline)
      session.timeReached(now)
      var buffer = ByteBuffer()
      #expect(session.flush(now, into: &buffer) == .connect)
      let time = Double(now.uptime - Self.now.uptime) / 1e9
      if time >= outage { return (time, delay) }
      end = session.transportEnded(now, failure: .connectFailed(errno: 111))
    }
  }

  private struct NoReturn: Error {
    let end: Disconnection
  }

  /// The most that come within any second.
  private func peak(_ times: [Double]) -> Double {
    var begin = 0
    var most = 0
    for index in times.indices {
      while times[begin] <= times[index] - 1 { begin += 1 }
      most = max(most, index - begin + 1)
    }
    return Double(most)
  }

  @Test(
    "10,000 clients that are cut off together come back within 5 s, never 1.5 times as many in a second as on average",
    arguments: Cut.allCases)
  func evenly(cut: Cut) throws {
    let cause = try cause(of: cut)
    let all = try (0..<Self.clients).map { try comeback(cause, outage: 0, seed: $0) }
    let peak = peak(all.map(\.arrival).sorted())
    #expect(peak < 1.5 * Double(Self.clients) / 5, "\(cut): \(peak)")
    let delays = all.map(\.delay).sorted()
    #expect(delays[0] >= 0 && delays[Self.clients - 1] < 5)
    // At random, evenly: so many tenths of them within as many tenths of the 5 s, but for chance.
    for tenth in 1..<10 { #expect(abs(delays[Self.clients * tenth / 10] - 0.5 * Double(tenth)) < 0.1, "\(cut)") }
  }

  /// Those whose first attempt was too early come again 2 to 2.6 s later, among those whose first it is: after more
  /// than 2 s that is twice as many as the 2,000 a second of a plain cut, never more.
  @Test(
    "So they do to a hub that is away for 0.7 s meanwhile; 1.6 times as many up to 2 s; then up to 4,200 a second",
    arguments: [0.3, 0.7, 1, 2, 3, 20])
  func restart(outage: Double) throws {
    for cut in [Cut.goingAway, .lost] {
      let cause = try cause(of: cut)
      let times = try (0..<Self.clients).map { try comeback(cause, outage: outage, seed: $0).arrival }.sorted()
      let mean = Double(Self.clients) / (times[Self.clients - 1] - times[0])
      let bound = outage < 1 ? 1.5 * mean : outage <= 2 ? 1.6 * mean : 4200
      #expect(peak(times) < bound, "\(cut), away for \(outage) s: mean \(mean)")
    }
  }
}
