// Room for numbered elements: it stays where it is, and goes with the table.
import HubBytes
import Testing

@Suite struct ChunkTableTests {
  @Test("what a table has room for stays where it is when it grows, also when it has many chunks")
  func growing() {
    var table = ChunkTable<Int>()
    let atFirst = table.capacity
    #expect(atFirst == 0)
    var slots: [UnsafeMutablePointer<Int>] = []
    let size = ChunkTable<Int>.chunkSize
    for chunk in 0..<40 {
      table.grow()
      let capacity = table.capacity
      #expect(capacity == (chunk + 1) * size)
      for index in chunk * size..<capacity {
        slots.append(table.pointer(index))
        table.pointer(index).initialize(to: index * 7)
      }
    }
    for index in slots.indices {
      let isThere = table.pointer(index) == slots[index] && slots[index].pointee == index * 7
      if !isThere { Issue.record("slot \(index) has moved") }
    }
    #expect(Set(slots).count == 40 * size)
  }

  @Test("a large table grows by more than a chunk, in huge pages, and what it has stays where it is")
  func growingLarge() {
    typealias Large = InlineArray<512, Int>  // 4 MB a chunk, of which little is touched
    var table = ChunkTable<Large>()
    let size = ChunkTable<Large>.chunkSize
    var slots: [UnsafeMutablePointer<Large>] = []
    var steps: [Int] = []
    while slots.count < 40 * size {
      let before = table.capacity
      table.grow()
      steps.append((table.capacity - before) / size)
      for index in before..<table.capacity { slots.append(table.pointer(index)) }
      table.pointer(before).initialize(to: Large(repeating: before))
      table.pointer(table.capacity - 1).initialize(to: Large(repeating: table.capacity - 1))
    }
    #expect(steps.prefix(16).allSatisfy { $0 == 1 })
    #expect(steps.last == 4)
    var next = 0
    for step in steps {
      for index in [next * size, (next + step) * size - 1] {
        let isThere = table.pointer(index) == slots[index] && slots[index].pointee[511] == index
        if !isThere { Issue.record("slot \(index) has moved") }
      }
      next += step
    }
    #expect(Set(slots).count == table.capacity)
  }
}
