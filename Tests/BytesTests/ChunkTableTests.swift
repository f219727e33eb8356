// Room for numbered elements: it stays where it is, and goes with the table.
import HubBytes
import Testing

@Suite struct ChunkTableTests {
  @Test("what a table has room for stays where it is when it grows, also when it has many chunks")
  func growing() {
    var table = ChunkTable<Int>()
    let atFirst = table.capacity
    #expect(atFirst == 0)
    var places: [UnsafeMutablePointer<Int>] = []
    let size = ChunkTable<Int>.chunkSize
    for chunk in 0..<40 {
      table.grow()
      let capacity = table.capacity
      #expect(capacity == (chunk + 1) * size)
      for index in chunk * size..<capacity {
        places.append(table.pointer(index))
        table.pointer(index).initialize(to: index * 7)
      }
    }
    for index in places.indices {
      let isThere = table.pointer(index) == places[index] && places[index].pointee == index * 7
      if !isThere { Issue.record("place \(index) has moved") }
    }
    #expect(Set(places).count == 40 * size)
  }
}
