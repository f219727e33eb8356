import Testing

@testable import HubGateway

@Suite struct SessionSizeTests {
  @Test func aSessionTakesAFewBytes() {
    #expect(MemoryLayout<Session>.stride <= 104)  // one for each connection, idle or not
  }
}
