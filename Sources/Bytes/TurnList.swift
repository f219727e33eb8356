// A list of bitwise-copyable values that is filled and emptied in each turn of a loop.
//
// `Array.removeAll(keepingCapacity:)` costs 60 to 250 instructions for any number of elements, an append checks whether
// the storage is shared, and reading an element of 300 bytes copies it. Here emptying is a store, and elements are used
// in place.

/// A growable list with one owner, whose elements are used in place.
@safe
public struct TurnList<Element: BitwiseCopyable>: ~Copyable {
  // Unsafe island: elements [0, used) and [0, initialized) hold values, every access is checked against `used`, and the
  // memory moves only in `append` and `nextSlot`, while no access to an element can be under way: the list has one
  // owner, who keeps the slot that `nextSlot` gives no longer than until the next change.
  @usableFromInline var base: UnsafeMutablePointer<Element>?
  @usableFromInline var capacity = 0
  @usableFromInline var used = 0
  @usableFromInline var initialized = 0

  /// An empty list; allocates nothing until something is appended.
  @inlinable public init() {}

  @inlinable deinit { unsafe base?.deallocate() }

  /// The number of elements.
  @inlinable public var count: Int { used }
  @inlinable public var isEmpty: Bool { used == 0 }

  /// The element of an index below `count`, read and changed in place.
  @inlinable public subscript(index: Int) -> Element {
    @inline(__always) unsafeAddress { unsafe UnsafePointer(pointer(index)) }
    @inline(__always) unsafeMutableAddress { unsafe pointer(index) }
  }

  /// Amortised O(1): the capacity at least doubles.
  @inlinable @inline(__always)
  public mutating func append(_ element: Element) {
    if used == capacity { grow(to: used + 1) }
    unsafe (base! + used).initialize(to: element)
    used += 1
  }

  /// The memory of the next element, which the owner fills in place; `appendSlot` then appends it. Valid until the list
  /// is changed. It holds `blank`, or what an element has left there.
  @inlinable @inline(__always)
  public mutating func nextSlot(_ blank: @autoclosure () -> Element) -> UnsafeMutablePointer<Element> {
    if used >= initialized { makeSlot(blank()) }
    return unsafe base! + used
  }

  /// Appends the element in `nextSlot`.
  @inlinable @inline(__always)
  public mutating func appendSlot() {
    precondition(used < initialized)
    used += 1
  }

  /// Appends `count` elements of another list, from `start` on.
  @inlinable
  public mutating func append(_ other: borrowing TurnList, from start: Int, count: Int) {
    precondition(start >= 0 && count >= 0 && start + count <= other.used)
    guard count > 0 else { return }
    if used + count > capacity { grow(to: used + count) }
    unsafe (base! + used).initialize(from: other.base! + start, count: count)
    used += count
  }

  /// Forgets the first `count` elements and moves the others to the front.
  @inlinable
  public mutating func removeFirst(_ count: Int) {
    precondition(count >= 0 && count <= used)
    guard count > 0, let base = unsafe base else { return }
    unsafe base.update(from: base + count, count: used - count)
    used -= count
  }

  /// Forgets all elements; keeps the memory.
  @inlinable public mutating func removeAll() { used = 0 }

  @inlinable @inline(__always)
  func pointer(_ index: Int) -> UnsafeMutablePointer<Element> {
    precondition(index >= 0 && index < used)
    return unsafe base! + index
  }

  @usableFromInline mutating func makeSlot(_ blank: Element) {
    if used == capacity { grow(to: used + 1) }
    unsafe (base! + used).initialize(to: blank)
    initialized = used + 1
  }

  @usableFromInline mutating func grow(to needed: Int) {
    let wanted = max(capacity * 2, needed, 16)
    let larger = UnsafeMutablePointer<Element>.allocate(capacity: wanted)
    if let base = unsafe base {
      unsafe larger.initialize(from: base, count: used)
      unsafe base.deallocate()
    }
    unsafe base = larger
    capacity = wanted
    initialized = min(initialized, used)
  }
}

/// Sendable because it has one owner, and its memory is not shared.
extension TurnList: @unchecked Sendable where Element: Sendable {}
