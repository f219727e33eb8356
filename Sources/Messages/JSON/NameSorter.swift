// Detects duplicate names in an object, for names outside the protocol.
//
// Comparing each pair would be quadratic, and a fixed hash can be made to collide. So the names of an object are
// sorted, when it ends, by their first six bytes and their length; equal ones by the next six, and so on. k names take
// k · log k steps for every six bytes that some of them have in common: with 128 members an object (protocol/README.md,
// "Envelope") a message of b bytes takes at most b · log2(128) / 6.
import HubBytes

/// Memory for sorting the names of one object, reused for the next one.
@safe
struct NameSorter: ~Copyable {
  /// The range of a name: in the message, or, if it was spelled with escapes, among the unescaped texts.
  private struct Name {
    var start: UInt32
    var length: UInt32
    var isUnescaped: Bool
  }

  /// Six bytes of a name, the lowest byte of its length, and its number in `names`.
  private typealias Key = UInt64
  private static let bytesOfKey = 6
  private static let numberBits: UInt64 = 8

  // Unsafe island: all three have room for `capacity` elements, of which [0, count) are initialised (of `spare`, within
  // `sort` those that it reads); elements are trivial. Every sorted range is within count.
  private let names: UnsafeMutablePointer<Name>
  private let keys: UnsafeMutablePointer<Key>
  private let spare: UnsafeMutablePointer<Key>
  private let capacity: Int
  private var count = 0
  #if DEBUG
    /// Keys made, compared or moved since the reader was made.
    private(set) var steps = 0
  #endif

  /// `capacity`: the limit of members of an object, up to 256.
  init(capacity: Int) {
    precondition(capacity <= 1 << NameSorter.numberBits)
    self.capacity = capacity
    unsafe names = .allocate(capacity: capacity)
    unsafe keys = .allocate(capacity: capacity)
    unsafe spare = .allocate(capacity: capacity)
  }

  deinit {
    unsafe names.deallocate()
    unsafe keys.deallocate()
    unsafe spare.deallocate()
  }

  mutating func removeAll() { count = 0 }

  /// Adds a name that begins at `start` of the message or, if it was spelled with escapes, of the unescaped texts.
  @inline(__always)
  mutating func add(start: UInt32, length: UInt32, isUnescaped: Bool) {
    precondition(count < capacity)
    unsafe (names + count).initialize(to: Name(start: start, length: length, isUnescaped: isUnescaped))
    unsafe (keys + count).initialize(to: Key(count))
    count += 1
  }

  /// Whether two of the names are the same.
  mutating func hasEqualNames(in message: Span<UInt8>, unescaped: Span<UInt8>) -> Bool {
    hasEqualNames(0..<count, from: 0, message, unescaped)
  }

  /// The names of a range are equal in their bytes before `offset`, as far as they have these, and in the lowest byte
  /// of their length. Nested calls have fewer names each, so there are at most as many as names.
  private mutating func hasEqualNames(
    _ range: Range<Int>, from offset: Int, _ message: Span<UInt8>, _ unescaped: Span<UInt8>
  ) -> Bool {
    var offset = offset
    repeat {
      // All of them have ended: they can only differ in the number of trailing zero bytes.
      guard load(range, from: offset, message, unescaped) else { return hasEqualLengths(range) }
      offset += NameSorter.bytesOfKey
    } while endOfRun(from: range.lowerBound, in: range) == range.upperBound
    sort(range)
    var first = range.lowerBound
    while first < range.upperBound {
      let last = endOfRun(from: first, in: range)
      if last - first > 1, hasEqualNames(first..<last, from: offset, message, unescaped) { return true }
      first = last
    }
    return false
  }

  /// Puts bytes of names from `offset` on into their keys; those behind an end are 0. False where no name has any.
  private mutating func load(
    _ range: Range<Int>, from offset: Int, _ message: Span<UInt8>, _ unescaped: Span<UInt8>
  ) -> Bool {
    var hasBytes = offset == 0
    for index in range {
      let number = unsafe keys[index] & (1 << NameSorter.numberBits - 1)
      let name = unsafe names[Int(number)]
      let left = Int(name.length) - offset
      var word: UInt64 = 0
      if left > 0 {
        hasBytes = true
        let start = Int(name.start) + offset
        word = name.isUnescaped ? unescaped.word(at: start) : message.word(at: start)
        if left < NameSorter.bytesOfKey { word &= 1 << UInt64(8 * left) - 1 }
      }
      unsafe keys[index] = word << 16 | UInt64(UInt8(truncatingIfNeeded: name.length)) << NameSorter.numberBits | number
    }
    step(range.count)
    return hasBytes
  }

  private mutating func hasEqualLengths(_ range: Range<Int>) -> Bool {
    for index in range {
      let number = unsafe keys[index] & (1 << NameSorter.numberBits - 1)
      unsafe keys[index] = UInt64(names[Int(number)].length) << NameSorter.numberBits | number
    }
    sort(range)
    return range.dropFirst().contains {
      unsafe keys[$0] >> NameSorter.numberBits == keys[$0 - 1] >> NameSorter.numberBits
    }
  }

  /// The end of the keys from `first` on that are equal but for the number.
  @inline(__always)
  private mutating func endOfRun(from first: Int, in range: Range<Int>) -> Int {
    let name = unsafe keys[first] >> NameSorter.numberBits
    var last = first + 1
    while last < range.upperBound, unsafe keys[last] >> NameSorter.numberBits == name { last += 1 }
    step(last - first)
    return last
  }

  // MARK: Sorting

  /// Insertion sort of runs of four, and merges without branches that depend on the keys.
  private mutating func sort(_ range: Range<Int>) {
    var start = range.lowerBound
    while start < range.upperBound {
      insert(start..<min(start + 4, range.upperBound))
      start += 4
    }
    var (from, to) = unsafe (keys, spare)
    var width = 4
    while width < range.count {
      var start = range.lowerBound
      while start < range.upperBound {
        let middle = min(start + width, range.upperBound)
        unsafe merge(start, middle, min(middle + width, range.upperBound), from, to)
        start += 2 * width
      }
      unsafe (from, to) = unsafe (to, from)
      width *= 2
    }
    if unsafe from != keys {
      unsafe (keys + range.lowerBound).update(from: spare + range.lowerBound, count: range.count)
    }
  }

  @inline(__always)
  private mutating func insert(_ range: Range<Int>) {
    var index = range.lowerBound + 1
    while index < range.upperBound {
      let key = unsafe keys[index]
      var hole = index
      while hole > range.lowerBound, unsafe keys[hole - 1] > key {
        unsafe keys[hole] = keys[hole - 1]
        hole -= 1
        step(1)
      }
      unsafe keys[hole] = key
      index += 1
      step(1)
    }
  }

  /// Merges two sorted runs.
  @inline(__always)
  private mutating func merge(
    _ start: Int, _ middle: Int, _ end: Int, _ from: UnsafeMutablePointer<Key>, _ to: UnsafeMutablePointer<Key>
  ) {
    var (left, right, index) = (start, middle, start)
    while left < middle, right < end {
      let (a, b) = unsafe (from[left], from[right])
      let isRight = b < a
      unsafe to[index] = isRight ? b : a
      right &+= isRight ? 1 : 0
      left &+= isRight ? 0 : 1
      index &+= 1
    }
    unsafe (to + index).update(from: from + left, count: middle - left)
    unsafe (to + index + (middle - left)).update(from: from + right, count: end - right)
    step(end - start)
  }

  @inline(__always)
  private mutating func step(_ count: Int) {
    #if DEBUG
      steps += count
    #endif
  }
}
