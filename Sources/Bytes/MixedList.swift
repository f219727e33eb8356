// A turn's list of elements of two kinds in one order: frequent bitwise-copyable ones, and all others.
//
// As one enum, the frequent case would be copied member by member, as the others need, each time it is passed on: a
// tenth of all instructions of a message. Kept apart, the frequent ones are contiguous and used in place, and each of
// the others has the number of frequent ones before it.

/// A list of `Common` values with some `Rare` ones among them.
public struct MixedList<Common: BitwiseCopyable, Rare>: ~Copyable {
  /// The location of an element.
  public enum Step {
    case common(Int)
    case rare(Int)
  }

  /// How far a walk has come.
  public struct Cursor {
    @usableFromInline var common = 0
    @usableFromInline var rare = 0

    @inlinable public init() {}
  }

  @usableFromInline var commons = TurnList<Common>()
  /// The rare elements, each with the number of common ones before it: ascending.
  @usableFromInline var rares: [(element: Rare, commonsBefore: Int)] = []

  @inlinable public init() {}

  /// The number of all elements.
  @inlinable public var count: Int { commons.count + rares.count }
  /// The number of rare elements.
  @inlinable public var rareCount: Int { rares.count }
  /// Whether there is no element of either kind.
  @inlinable public var isEmpty: Bool { commons.isEmpty && rares.isEmpty }

  /// The number of elements for which it has memory.
  @inlinable public var capacity: Int { commons.capacity + rares.capacity }

  /// Appends a common element. Amortised O(1).
  @inlinable @inline(__always)
  public mutating func append(common element: Common) { commons.append(element) }

  /// The memory of the next common element, which the caller fills: see `TurnList.nextSlot`.
  @inlinable @inline(__always)
  public mutating func nextCommonSlot(_ blank: @autoclosure () -> Common) -> UnsafeMutablePointer<Common> {
    unsafe commons.nextSlot(blank())
  }

  /// Appends the element in `nextCommonSlot`.
  @inlinable @inline(__always)
  public mutating func appendCommonSlot() { commons.appendSlot() }

  /// Appends a rare element, behind all common ones that are there. Amortised O(1).
  @inlinable
  public mutating func append(_ element: Rare) { rares.append((element, commonsBefore: commons.count)) }

  /// The next element in the order in which they were appended; nil at the end.
  @inlinable @inline(__always)
  public func next(_ cursor: inout Cursor) -> Step? {
    if cursor.rare < rares.count, rares[cursor.rare].commonsBefore == cursor.common {
      cursor.rare += 1
      return .rare(cursor.rare - 1)
    }
    guard cursor.common < commons.count else { return nil }
    cursor.common += 1
    return .common(cursor.common - 1)
  }

  /// The common element of this index among the common ones (`Step.common`), read in place.
  @inlinable public subscript(common index: Int) -> Common {
    @inline(__always) unsafeAddress { unsafe UnsafePointer(commons.pointer(index)) }
  }

  /// The address of a common element, valid until the list is changed; a large value is then read without a copy.
  @inlinable @inline(__always)
  public func pointer(ofCommon index: Int) -> UnsafePointer<Common> { unsafe UnsafePointer(commons.pointer(index)) }

  /// The rare element of this index among the rare ones (`Step.rare`), as a copy.
  @inlinable public subscript(rare index: Int) -> Rare { rares[index].element }

  /// Forgets all elements; keeps the memory.
  @inlinable
  public mutating func removeAll() {
    commons.removeAll()
    if !rares.isEmpty { rares.removeAll(keepingCapacity: true) }
  }

  /// Moves the first `count` elements of another list, in order, to the end.
  @inlinable
  public mutating func append(first count: Int, of other: inout MixedList) {
    var cursor = Cursor()
    for _ in 0..<count where other.next(&cursor) == nil { preconditionFailure("there are fewer elements") }
    for (element, before) in other.rares[..<cursor.rare] { rares.append((element, commons.count + before)) }
    commons.append(other.commons, from: 0, count: cursor.common)
    other.commons.removeFirst(cursor.common)
    other.rares.removeFirst(cursor.rare)
    for index in other.rares.indices { other.rares[index].commonsBefore -= cursor.common }
  }
}

extension MixedList: Sendable where Common: Sendable, Rare: Sendable {}
