// Sorts the drivers of an answer, nearest first.
//
// A report has 280 bytes and a reference: sorting a thousand took a millisecond, nearly all of it for moving them. So
// their keys are sorted in a heap: built in O(n), 10 µs for a thousand, and O(log n) for each driver when its turn
// comes, also where an answer is written in pieces. Williams, "Algorithm 232: Heapsort", CACM 7 (1964).

import HubBytes

/// Gives the indices of drivers in a list, nearest first, of equal distances the smaller id.
struct DriverOrder {
  private struct Key {
    var distance: Double
    var index: Int32
  }

  /// A binary heap: the first key is the next driver's, and each is before its children at 2i + 1 and 2i + 2.
  private var heap: [Key]

  init(_ drivers: [DriverReport]) {
    heap = drivers.indices.map { Key(distance: drivers[$0].distance ?? 0, index: Int32(truncatingIfNeeded: $0)) }
    for index in stride(from: heap.count / 2 - 1, through: 0, by: -1) { sink(heap[index], from: index, drivers) }
  }

  /// The index of the next driver. Preconditions: there is one, and `drivers` is the same at each call.
  mutating func next(_ drivers: [DriverReport]) -> Int {
    let next = heap[0]
    let last = heap.removeLast()
    if !heap.isEmpty { sink(last, from: 0, drivers) }
    return Int(next.index)
  }

  /// Inserts a key at an index, or below it where smaller ones are.
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
  /// Lexicographic by bytes.
  func isBefore(_ other: Identifier) -> Bool {
    for word in 0..<InlineText.capacity / 8 {
      // Bytes past the end of a text are 0, which is below every character of an id.
      let (a, b) = (text.word(word).bigEndian, other.text.word(word).bigEndian)
      if a != b { return a < b }
    }
    return false
  }
}

extension DriverList {
  /// Sorts nearest first, of equal distances the smaller id first.
  public mutating func sort() {
    var order = DriverOrder(drivers)
    drivers = drivers.indices.map { _ in drivers[order.next(drivers)] }
  }
}
