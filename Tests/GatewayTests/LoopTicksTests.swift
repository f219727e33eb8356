// A hub one of whose loops hangs says so: to its load balancer, and to the service manager, which starts it again.
import Foundation
import Glibc
import HubBytes
import HubSystem
import HubTransport
import Testing

@testable import HubGateway

@Suite struct LoopTicksTests {
  /// A service manager's socket, under an abstract name (unix(7)).
  private final class Notices {
    let name = "@loop-ticks-\(UUID().uuidString)"
    private let socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)

    init() {
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      let path = [0] + Array(name.utf8.dropFirst())
      unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path) }
      let length = socklen_t(MemoryLayout<sa_family_t>.size + path.count)
      let result = unsafe withUnsafePointer(to: &address) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe bind(socket, $0, length) }
      }
      precondition(result == 0, "bind: \(errno)")
    }

    deinit { close(socket) }

    /// How many came since the last call.
    func count() -> Int {
      var (count, bytes) = (0, [UInt8](repeating: 0, count: 256))
      while unsafe recv(socket, &bytes, bytes.count, Int32(MSG_DONTWAIT)) > 0 { count += 1 }
      return count
    }
  }

  private func health(_ hub: HandDrivenHub) throws -> (status: String, body: String?) {
    let request = try HandDrivenRequest(hub, "/healthz")
    try hub.turn {
      request.ownTurn()
      return request.isComplete
    }
    return (request.status, request.body)
  }

  private func pass(_ seconds: Int, _ hub: HandDrivenHub) {
    for _ in 0..<seconds {
      hub.clock.advance(milliseconds: 1000)
      hub.loop.runTurn(timeoutMilliseconds: 0)
    }
  }

  @Test("no sign of life, and 503, where one of two loops has not turned for 10 s; again where it turns")
  func hanging() throws {
    let notices = Notices()
    let environment = ["NOTIFY_SOCKET": notices.name, "WATCHDOG_USEC": "2000000"]
    let hub = try HandDrivenHub(clock: HandClock(), idleLoops: 1) {
      $0.serviceManager = try? ServiceManager(environment: environment)
    }
    pass(10, hub)
    #expect(notices.count() >= 9)
    #expect(try health(hub) == ("200", "ok\n"))
    pass(2, hub)
    _ = notices.count()
    let (status, body) = try health(hub)
    #expect(status == "503" && body?.contains("event loop 1 has not turned for 1") == true, "\(body ?? "")")
    pass(5, hub)
    #expect(notices.count() == 0)
  }

  @Test("a loop that has ended hangs no more than one that goes on, and the one that is later is named")
  func ended() throws {
    let ticks = LoopTicks(loops: 3)
    let second: Int64 = 1_000_000_000
    #expect(ticks.hanging(at: 100 * second, asker: -1) == nil, "none has begun")
    ticks.note(0, at: 100 * second)
    ticks.note(1, at: 103 * second)
    ticks.note(2, at: 102 * second)
    #expect(ticks.hanging(at: 110 * second, asker: -1) == nil)
    ticks.ended(0)
    #expect(ticks.hanging(at: 112 * second, asker: -1) == nil)
    let first = try #require(ticks.hanging(at: 114 * second, asker: -1))
    #expect(first == (2, 12))
    let seenByIt = try #require(ticks.hanging(at: 114 * second, asker: 2))
    #expect(seenByIt == (1, 11), "who asks does not hang")
    ticks.note(2, at: 114 * second)
    let other = try #require(ticks.hanging(at: 115 * second, asker: -1))
    #expect(other == (1, 12))
    ticks.note(1, at: 115 * second)
    #expect(ticks.hanging(at: 115 * second, asker: -1) == nil)
  }
}
