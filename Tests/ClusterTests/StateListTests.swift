// States that wait for a peer, and how they are written.
import HubBytes
import Testing

@testable import HubCluster

@Suite struct StateListTests {
  @Test("Of a key the newest state is kept, in the place of the first, also behind some that are gone")
  func list() {
    var list = StateList<Int>()
    func bodies() -> [Int] { (0..<list.count).map { list[$0].body } }
    var areNew = [list.append(1, key: 7, 1), list.append(2, key: 8, 2), list.append(3, key: 9, 3)]
    areNew.append(list.append(10, key: 7, 4))
    #expect(areNew == [true, true, true, false] && bodies() == [10, 2, 3] && list[0].binding == 4)
    list.removeFirst(1)
    areNew = [list.append(20, key: 8, 2), list.append(11, key: 7, 1)]
    #expect(areNew == [false, true] && bodies() == [20, 3, 11])
    list.removeFirst(0)
    #expect(list.count == 3)
    list.removeFirst(3)
    #expect(list.count == 0)
    for key in 0...UInt64(ClusterLimits.keptStates) { _ = list.append(0, key: key, 1) }
    list.removeAll()
    areNew = [list.append(5, key: 9, 1)]
    #expect(areNew == [true] && bodies() == [5])
  }

  @Test("A run of any length is read as it was written, within another one as well")
  func runs() throws {
    for count in [0, 1, 126, 127, 128, 129, 16_383, 16_384, 70_000] {
      var buffer = ByteBuffer()
      buffer.append(UInt8(9))
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
      buffer.append(run: { outer in
        outer.append(UInt8(8))
        outer.append(run: { $0.append(bytes) })
        outer.append(UInt8(7))
      })
      buffer.append(UInt8(6))
      var reader = ClusterFrameReader(buffer.array()[...])
      #expect(try reader.byte() == 9)
      var outer = ClusterFrameReader(try reader.run())
      #expect(try reader.byte() == 6 && reader.isAtEnd)
      #expect(try outer.byte() == 8)
      #expect(try outer.run() == bytes[...])
      #expect(try outer.byte() == 7 && outer.isAtEnd)
    }
  }
}
