// What the demo's two threads exchange.
import HubMessages
import HubSystem
import Testing

@testable import locationhub

@Suite struct DemoBoardTests {
  @Test("A position that comes behind newer fixes of its driver has its whole delay, over any number of fixes")
  func delayed() throws {
    let board = DemoBoard(drivers: 2, waker: try Waker())
    let start: Int64 = 1_763_680_000_000
    for second in 0..<5 as Range<Int64> {
      let uptime = 7_000_000_000 + second * 1_000_000_000
      board.noteSend(driver: 1, Timestamp(milliseconds: start + second * 1000), at: uptime)
    }
    for second in 0..<5 as Range<Int64> {
      let sent = board.sendTime(driver: 1, Timestamp(milliseconds: start + second * 1000))
      #expect(sent == 7_000_000_000 + second * 1_000_000_000)
    }
    #expect(board.sendTime(driver: 1, Timestamp(milliseconds: start + 5000)) == nil)
    #expect(board.sendTime(driver: 0, Timestamp(milliseconds: start)) == nil)
  }
}
