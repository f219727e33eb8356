// What the hub counts itself: its page of metrics, fetched by one request.
import HubBytes
import HubSystem
package import HubTransport

package struct MetricsPage: Sendable {
  private let samples: [Substring: Double]

  /// From Prometheus' text format: `name{label="value"} 1`.
  package init(parsing text: String) {
    var samples: [Substring: Double] = [:]
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
      guard let space = line.lastIndex(of: " "), let value = Double(line[line.index(after: space)...]) else { continue }
      samples[line[..<space]] = value
    }
    self.samples = samples
  }

  /// The value of a sample, `locationhub_dropped_total{reason="overflow"}` for instance; 0 where there is none.
  package func callAsFunction(_ name: String) -> Double { samples[Substring("locationhub_" + name)] ?? 0 }

  /// Everything that was not delivered because a newer position was.
  var conflated: Double {
    self("dropped_total{reason=\"conflated_slow\"}") + self("dropped_total{reason=\"conflated_interval\"}")
  }

  /// Updates of a cell that were not sent to one of its watchers, for earlier ones had not left yet.
  var areasSkipped: Double { self("area_updates_skipped_total") }

  /// Positions that left or are about to. The hub counts one when it is made for its reader; where a newer one takes
  /// its place before the socket has it, it never leaves. What an interval holds back is not made before it is over.
  var positionsSent: Double { self("positions_out_total") - self("dropped_total{reason=\"conflated_slow\"}") }

  /// Fetches the page, within two seconds; nil where that fails.
  package static func fetch(_ address: SocketAddress, tls: ServerTrust? = nil) -> MetricsPage? {
    do throws(SystemError) {
      let fetch = try Fetch(address, tls)
      return fetch.run().map { MetricsPage(parsing: $0) }
    } catch {
      return nil
    }
  }
}

private final class Fetch: EventLoopDelegate {
  private let loop: EventLoop
  private let id: ConnectionID
  private let address: SocketAddress
  private var answer: [UInt8] = []
  private var isOver = false

  init(_ address: SocketAddress, _ tls: ServerTrust?) throws(SystemError) {
    loop = try EventLoop()
    self.address = address
    id = try loop.connect(address, tls: tls?.peer)
    loop.delegate = self
  }

  /// The body of the answer.
  func run() -> String? {
    let end = ClockReading.read().uptimeNanoseconds + 2_000_000_000
    while !isOver, ClockReading.read().uptimeNanoseconds < end { loop.runTurn(timeoutMilliseconds: 50) }
    let text = String(decoding: answer, as: UTF8.self)
    guard isOver, text.hasPrefix("HTTP/1.1 200") else { return nil }
    return text
  }

  func connected(_ id: ConnectionID) {
    let start = loop.arena.count
    loop.arena.append("GET /metrics?role=ops&id=loadtest HTTP/1.1\r\nConnection: close\r\nHost: ")
    loop.arena.append(utf8: "\(address)\r\n\r\n")
    loop.send(start..<loop.arena.count, to: id)
  }

  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) { answer.append(contentsOf: bytes) }
  func closed(_ id: ConnectionID, _ cause: CloseCause) { isOver = true }
  func overflowed(_ id: ConnectionID) {}
}
