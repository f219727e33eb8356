// Two drivers within the distance of a roaming fence. A pair stands in the lists of both, by way of its two links.

struct FencePair {
  /// One of the two, and where its list goes on.
  struct End {
    var driver: UInt32
    /// The driver's next pair; −1 for none.
    var next: Int32 = -1
  }

  var fence: Handle
  /// The driver whose fix began it is the first.
  var ends: (End, End)
  /// The time of that fix, ms since 1970.
  var enteredMilliseconds: Int64

  func end(of driver: Int) -> End { Int(ends.0.driver) == driver ? ends.0 : ends.1 }

  func other(than driver: Int) -> Int { Int(ends.0.driver) == driver ? Int(ends.1.driver) : Int(ends.0.driver) }

  mutating func setNext(_ next: Int32, of driver: Int) {
    if Int(ends.0.driver) == driver { ends.0.next = next } else { ends.1.next = next }
  }
}
