// Names of what is a small number in the simulated world.
import HubBytes
import HubMessages

enum Names {
  /// When the world begins (ms since 1970).
  static let origin: Int64 = 1_763_680_000_000
  static let trips = (0..<World.trips).map { id("trip-\($0)") }
  static let fences = (0..<World.fences).map { id("fence-\($0)") }
  static let channels =
    trips.map { Channel.trip($0) } + (0..<World.drivers).map { Channel.driver(id("driver-\($0)")) }
    + fences.map { Channel.fence($0) }
  /// Of messages that nobody keeps.
  static let anyMessage = message(9_999_999)

  static func id(_ text: String) -> Identifier { Identifier(text)! }

  static func topic(_ channel: Channel) -> Int? { channels.firstIndex(of: channel) }

  /// "m" and seven digits.
  static func message(_ number: Int) -> MessageID {
    var word: UInt64 = 0
    var rest = number
    for _ in 0..<7 {
      word = word << 8 | UInt64(0x30 + rest % 10)
      rest /= 10
    }
    return withUnsafeBytes(of: (word << 8 | 0x6D).littleEndian) { MessageID($0)! }
  }

  static func number(_ message: MessageID) -> Int {
    var rest = message.text.word(0) >> 8
    var number = 0
    for _ in 0..<7 {
      number = number * 10 + Int(rest & 0xFF) - 0x30
      rest >>= 8
    }
    return number
  }
}
