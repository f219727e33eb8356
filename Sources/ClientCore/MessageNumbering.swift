// The ids of a client's messages: a prefix unique to the run, and a number. The hub recognises a repeated `trip_status`
// by its id, so a restarted program must not reuse one.
import HubBytes
import HubMessages

struct MessageNumbering {
  private let prefix: InlineText
  /// The number of the next message.
  private(set) var next: UInt64 = 1

  init(random: inout ClientRandom) {
    // 11 characters hold 56 random bits; with the dash and 20 digits an id stays well below its 64 bytes.
    prefix = InlineText(String(random.next() >> 8, radix: 36) + "-") ?? InlineText()
  }

  mutating func take() -> UInt64 {
    defer { next += 1 }
    return next
  }

  /// No allocation: called for every message.
  func id(_ number: UInt64) -> MessageID {
    unsafe withUnsafeTemporaryAllocation(byteCount: 64, alignment: 8) { bytes in
      var count = 0
      unsafe prefix.withBytes {
        unsafe bytes.copyMemory(from: $0)
        count = $0.count
      }
      var digits = 1
      var rest = number / 10
      while rest > 0 {
        digits += 1
        rest /= 10
      }
      rest = number
      for index in (count..<count + digits).reversed() {
        unsafe bytes[index] = UInt8(ascii: "0") + UInt8(rest % 10)
        rest /= 10
      }
      guard let id = unsafe MessageID(UnsafeRawBufferPointer(rebasing: bytes[..<(count + digits)])) else {
        preconditionFailure("the prefix is short")
      }
      return id
    }
  }

  /// The number in an id of this client; nil in any other.
  func number(of id: MessageID) -> UInt64? {
    unsafe id.text.withBytes { bytes in
      let start = prefix.count
      guard bytes.count > start, unsafe prefix.withBytes({ unsafe bytes[..<start].elementsEqual($0) }) else {
        return nil
      }
      return unsafe parseUnsignedInteger(UnsafeRawBufferPointer(rebasing: bytes[start...]))
    }
  }
}
