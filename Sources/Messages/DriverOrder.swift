// The drivers of an answer, the nearest first.
//
// A report has 280 bytes and a reference: to sort a thousand of them took a millisecond, nearly all of it for moving
// them about. So their keys are put in order, in a heap: made in O(n), 10 µs for a thousand, and each driver costs
// O(log n) when its turn comes. An answer that is written in pieces is put in order in pieces, too. Williams,
// "Algorithm 232: Heapsort", CACM 7 (1964).

import HubBytes

/// Gives the indices of drivers in a list, the nearest first, of equal distances the smaller id.
struct DriverOrder {
  private struct Key {
    var distance: Double
    var index: Int32
  }

  /// The first is the next; each is before those at twice its index and one and two more.
  private var heap: [Key]

  init(_ drivers: [DriverReport]) {
    heap = drivers.indices.map { Key(distance: drivers[$0].distance ?? 0, index: Int32(truncatingIfNeeded: $0)) }
    for index in stride(from: heap.count / 2 - 1, through: 0, by: -1) { sink(heap[index], from: index, drivers) }
  }

  /// The index of the next one, which there must be. Pass the same drivers each time.
  mutating func next(_ drivers: [DriverReport]) -> Int {
    let next = heap[0]
    let last = heap.removeLast()
    if !heap.isEmpty { sink(last, from: 0, drivers) }
    return Int(next.index)
  }

  /// Puts a key at an index, or below it, behind those that are before it.
  private mutating func sink(_ key: Key, from index: Int, _ drivers: [DriverReport]) {
    var index = index
    while true {
      var child = 2 * index + 1
      guard child < heap.count else { break }
      if child + 1 < heap.count, isBefore(heap[child + 1], heap[child], drivers) { child += 1 }
      guard isBefore(heap[child], key, drivers) else { break }
      heap[index] = heap[child]
      index = child
    }
    heap[index] = key
  }

  @inline(__always)
  private func isBefore(_ a: Key, _ b: Key, _ drivers: [DriverReport]) -> Bool {
    if a.distance != b.distance { return a.distance < b.distance }
    return drivers[Int(a.index)].driverID.isBefore(drivers[Int(b.index)].driverID)
  }
}

extension Identifier {
  /// By their characters; what another one begins with is before it.
  func isBefore(_ other: Identifier) -> Bool {
    for word in 0..<InlineText.capacity / 8 {
      // What is behind the end is 0, which no character is.
      let (a, b) = (text.word(word).bigEndian, other.text.word(word).bigEndian)
      if a != b { return a < b }
    }
    return false
  }
}

extension DriverList {
  /// Puts the nearest first, of equal distances the smaller id.
  public mutating func sort() {
    var order = DriverOrder(drivers)
    drivers = drivers.indices.map { _ in drivers[order.next(drivers)] }
  }
}
