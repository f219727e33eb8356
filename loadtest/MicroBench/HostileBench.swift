// What a byte of the messages that cost their reader most takes, beside a byte of ordinary ones; and the check of a
// polygon that looks as if all its edges might cross. Exit code 1 where a byte takes more than four times as much as an
// ordinary one.

import Glibc
import HubBytes
import HubGeo
import HubHostileMessages
import HubMessages

enum HostileBench {
  private static let rounds = 9
  private static let most = 4.0

  static func run() {
    let ordinary = OrdinaryMessage.allCases.map { (text: $0.text, nanoseconds: nanoseconds(of: $0.text)) }
    for (kind, message) in zip(OrdinaryMessage.allCases, ordinary) {
      report(kind.rawValue, message.text.count, message.nanoseconds, nil)
    }
    let bytes = ordinary.reduce(0) { $0 + $1.text.count }
    let each = ordinary.reduce(0) { $0 + $1.nanoseconds } / Double(bytes)
    print("ordinary messages: \(text(each)) ns a byte")
    var worst = 0.0
    for shape in HostileMessage.allCases {
      var random = Generator()
      let message = shape.text(bytes: 262_144, &random)
      let taken = nanoseconds(of: message)
      worst = max(worst, taken / Double(message.count) / each)
      report(shape.rawValue, message.count, taken, each)
    }
    print("at most \(text(worst)) times as much as an ordinary byte (limit \(text(most)))")
    for spikes in [62, 250, 998] { reportStar(spikes) }
    if worst > most { exit(1) }
  }

  private static func report(_ name: String, _ bytes: Int, _ nanoseconds: Double, _ ordinary: Double?) {
    let each = nanoseconds / Double(bytes)
    let ratio = ordinary.map { ", \(text(each / $0)) times" } ?? ""
    print("\(name): \(bytes) B in \(Int(nanoseconds)) ns, \(text(each)) ns a byte\(ratio)")
  }

  /// The best of several rounds: what is left of chance only ever adds.
  private static func best(calls: Int, _ body: () -> Void) -> Double {
    var best = Double.infinity
    for _ in 0..<rounds {
      let elapsed = ContinuousClock().measure { for _ in 0..<calls { body() } }
      let (seconds, attoseconds) = elapsed.components
      best = min(best, (Double(seconds) * 1e9 + Double(attoseconds) / 1e9) / Double(calls))
    }
    return best
  }

  private static func nanoseconds(of message: [UInt8]) -> Double {
    let reader = MessageReader()
    return best(calls: max(5, 1_000_000 / message.count)) {
      do throws(MessageError) {
        _ = try message.span.withUnsafeBytes { (bytes) throws(MessageError) in
          try reader.read(bytes, time: .unixMilliseconds, isValidUTF8: true)
        }
      } catch {
        preconditionFailure(error.text)
      }
    }
  }

  /// A star of so many spikes: the boxes around all its edges overlap.
  private static func reportStar(_ spikes: Int) {
    let corners = (0..<spikes).map { corner -> Coordinate in
      let direction = Double(corner) * 2 * .pi / Double(spikes)
      let reach = corner % 2 == 0 ? 0.02 : 0.0001
      return Coordinate(
        clampingLatitude: 41.15 + reach * sin(direction), wrappingLongitude: -8.61 + reach * cos(direction))
    }
    let taken = best(calls: 20) {
      do throws(PolygonError) {
        _ = try Polygon(rings: [corners + [corners[0]]], limit: 1000)
      } catch {
        preconditionFailure("\(error)")
      }
    }
    print("a star of \(spikes) corners is checked in \(Int(taken)) ns")
  }

  private static func text(_ value: Double) -> String { "\(Int(value * 100 + 0.5) / 100).\(padded(value))" }

  private static func padded(_ value: Double) -> String {
    let hundredths = Int(value * 100 + 0.5) % 100
    return hundredths < 10 ? "0\(hundredths)" : "\(hundredths)"
  }
}

/// Draws alike in each run (SplitMix: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators",
/// 2014).
private struct Generator: RandomNumberGenerator {
  private var state: UInt64 = 7

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }
}
