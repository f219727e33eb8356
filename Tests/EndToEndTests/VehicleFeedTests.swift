// The feed of all vehicles: page by page from the hub, and kept for those who ask meanwhile.
import HubMessages
import Testing

@testable import HubGateway

extension EndToEnd {
  @Suite struct VehicleFeedTests {
    /// How many vehicles a feed has: its fields of number 2 (`entity`).
    private func vehicles(_ feed: [UInt8]) throws -> Int {
      var (index, count) = (0, 0)
      while index < feed.count {
        let tag = feed[index]
        #expect(tag == 0x0A || tag == 0x12)
        var (length, shift) = (0, 0)
        repeat {
          index += 1
          length |= Int(feed[index] & 0x7F) << shift
          shift += 7
        } while feed[index] & 0x80 != 0
        index += 1 + length
        if tag == 0x12 { count += 1 }
      }
      #expect(index == feed.count)
      return count
    }

    @Test func `a token whose channels have fleet reads it, and gets nothing else by that`() throws {
      let hub = try TokenHub()
      let driver = try hub.join(hub.token(.driver, "d1"))
      try driver.sendFix(0)
      try hub.hub.metrics { $0.fixes("accepted") == 1 }
      let path = "/v1/gtfs-realtime/vehicle-positions?access_token="
      let planner = try hub.token(.rider, "planner", channels: ["fleet"])
      #expect(try hub.hub.get(path + planner).status == 200)
      #expect(try hub.hub.get(path + hub.token(.rider, "r1", channels: ["driver:*"])).status == 403)
      #expect(try hub.join(planner).answer(toSubscribing: "fleet") == "forbidden")
      #expect(try hub.hub.get("/v1/drivers/d1?access_token=\(planner)").status == 403)
    }

    private let ask = "GET /v1/gtfs-realtime/vehicle-positions?role=ops&id=o"

    @Test(arguments: loopCounts) func `all pages are in it, and the same bytes again for a while`(loops: Int) throws {
      let hub = try TestHub(loops: loops) { $0.limits.vehiclesPerTurn = 2 }
      var drivers = try (0..<7).map { try hub.driver("d\($0)") }
      for driver in drivers { try driver.sendFix(0) }
      try hub.metrics { $0.fixes("accepted") == 7 }
      let connection = try hub.connect()
      func feed() throws -> [UInt8] {
        try connection.send("\(ask) HTTP/1.1\r\nHost: localhost\r\n\r\n")
        let response = try connection.readResponse()
        #expect(response.status == 200 && response.fields["content-type"] == "application/x-protobuf")
        return response.body
      }
      let start = uptime()
      let first = try feed()
      #expect(try vehicles(first) == 7)
      drivers.append(try hub.driver("d7"))
      try drivers[7].sendFix(0)
      try hub.metrics { $0.fixes("accepted") == 8 }
      let again = try feed()
      #expect(again == first || uptime() - start >= Limits.vehicleFeedSeconds)
    }
  }
}
