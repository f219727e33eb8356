// Pages of all drivers, by turns that the test gives by hand.
import Foundation
import HubCore
import HubMessages
import HubTransport
import Testing

@testable import HubGateway

@Suite struct DriverPageTests {
  private func hub(drivers: Int = 250, _ change: (inout Limits) -> Void = { _ in }) throws -> HandDrivenHub {
    let hub = try HandDrivenHub(clock: HandClock()) {
      $0.allowsDevelopmentCredentials = true
      change(&$0.limits)
    }
    try hub.addDrivers(drivers)
    return hub
  }

  private func fetch(_ hub: HandDrivenHub, _ query: String, role: String = "ops") throws -> HandDrivenRequest {
    let request = try HandDrivenRequest(hub, "/v1/drivers?role=\(role)&id=x1\(query)")
    try hub.turn {
      request.ownTurn()
      return request.isComplete
    }
    return request
  }

  private func page(_ hub: HandDrivenHub, _ query: String) throws -> (drivers: [[String: Any]], next: String?) {
    let answer = try fetch(hub, query)
    let body = try #require(answer.body)
    let object = try #require(try JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any])
    return (try #require(object["drivers"] as? [[String: Any]]), object["next"] as? String)
  }

  @Test("page by page every driver comes once, however few a turn looks at", arguments: [1, 7, 100, 10_000])
  func pages(perTurn: Int) throws {
    let hub = try hub { $0.hub.driversListedPerTurn = perTurn }
    var found: [String] = []
    var cursor: String?
    var pages = 0
    repeat {
      let (drivers, next) = try page(hub, "&limit=40" + (cursor.map { "&cursor=\($0)" } ?? ""))
      found += drivers.compactMap { $0["driverId"] as? String }
      #expect(drivers.count <= 40)
      cursor = next
      pages += 1
    } while cursor != nil && pages < 20
    #expect(pages == 7 && found.count == 250 && Set(found).count == 250)
  }

  @Test("a driver is found by how its id begins, with what a control room shows of it")
  func search() throws {
    let hub = try hub()
    let (drivers, next) = try page(hub, "&search=driver-24")
    #expect(
      Set(drivers.compactMap { $0["driverId"] as? String }) == Set(["driver-24"] + (240...249).map { "driver-\($0)" }))
    #expect(next == nil)
    let driver = drivers[0]
    #expect(driver["online"] as? Bool == true && driver["status"] as? String == "available")
    #expect(driver["confidence"] is String && driver["latitude"] is Double && driver["age"] is Double)
    #expect(driver["tripId"] == nil && driver["predicted"] == nil)
    #expect(try page(hub, "&search=Driver-24").drivers.isEmpty)
    #expect(try page(hub, "&search=").drivers.count == 100)
  }

  @Test("who is offline is that, and nothing else")
  func status() throws {
    let hub = try hub(drivers: 30)
    #expect(try page(hub, "&status=available").drivers.count == 30)
    #expect(try page(hub, "&status=on_trip,unavailable,background,offline").drivers.isEmpty)
    // No fix for a while.
    for _ in 0..<1200 {
      hub.clock.advance(milliseconds: 900)  // more would be a stall of the hub, which is not the drivers'
      hub.loop.runTurn(timeoutMilliseconds: 0)
    }
    #expect(try page(hub, "&status=available,background").drivers.isEmpty)
    let offline = try page(hub, "&status=offline").drivers
    #expect(offline.count == 30 && offline.allSatisfy { $0["online"] as? Bool == false })
  }

  @Test(
    "what is no such question is refused",
    arguments: ["&status=busy", "&status=", "&limit=0", "&limit=1001", "&cursor=x", "&cursor=d-1", "&search=a%20b"])
  func refused(query: String) throws { #expect(try fetch(try hub(drivers: 1), query).status == "400") }

  @Test("it is for ops, and so many pages are put together at once")
  func limits() throws {
    let hub = try hub {
      $0.hub.driverLists = 1
      $0.hub.driversListedPerTurn = 1
    }
    for role in ["driver", "rider"] { #expect(try fetch(hub, "", role: role).status == "403") }
    let first = try HandDrivenRequest(hub, "/v1/drivers?role=ops&id=o1&search=nobody")
    for _ in 0..<4 { hub.loop.runTurn(timeoutMilliseconds: 0) }
    #expect(try fetch(hub, "").status == "503")
    try hub.turn {
      first.ownTurn()
      return first.isComplete
    }
    #expect(first.body == #"{"drivers":[]}"# && first.status == "200")
  }
}
