// A set of outlets as two words of bits, used for each position that leaves the hub.

/// A set of outlets by their numbers, which are below `OutletSet.capacity`. Each operation takes a few instructions.
public struct OutletSet: Sendable, Equatable, BitwiseCopyable {
  public static let capacity = 128

  private var low: UInt64
  private var high: UInt64

  public init() { self.init(low: 0, high: 0) }

  /// The set whose members are the bits of `low` (0–63) and of `high` (64–127).
  package init(low: UInt64, high: UInt64) {
    self.low = low
    self.high = high
  }

  @inline(__always) public var isEmpty: Bool { low | high == 0 }

  /// The number of members, 0…128.
  public var count: Int { low.nonzeroBitCount + high.nonzeroBitCount }

  /// Whether the outlet (0–127) is a member.
  @inline(__always)
  public func contains(_ outlet: Int) -> Bool { (outlet < 64 ? low : high) & OutletSet.bit(outlet) != 0 }

  /// Makes an outlet (0–127) a member; one that is, stays one.
  @inline(__always)
  public mutating func insert(_ outlet: Int) {
    if outlet < 64 { low |= OutletSet.bit(outlet) } else { high |= OutletSet.bit(outlet) }
  }

  /// Ends an outlet's membership; does nothing for one that is no member.
  public mutating func remove(_ outlet: Int) {
    if outlet < 64 { low &= ~OutletSet.bit(outlet) } else { high &= ~OutletSet.bit(outlet) }
  }

  /// Adds all members of another set.
  @inline(__always)
  public mutating func formUnion(_ other: OutletSet) {
    low |= other.low
    high |= other.high
  }

  /// Removes and returns the member with the lowest number; nil for the empty set.
  @inline(__always)
  public mutating func popFirst() -> Int? {
    if low != 0 {
      defer { low &= low - 1 }
      return low.trailingZeroBitCount
    }
    guard high != 0 else { return nil }
    defer { high &= high - 1 }
    return 64 + high.trailingZeroBitCount
  }

  @inline(__always)
  private static func bit(_ outlet: Int) -> UInt64 { 1 << UInt64(outlet & 63) }
}
