// Which of a phone's fixes go out: by the power mode, the trip and the hub's advice.
import HubGeo
import HubMessages
import Testing

@testable import LocationHubClient

@Suite struct SamplingControllerTests {
  /// Northwards at 30 m/s; one a second, as Core Location measures.
  private func taken(
    _ controller: SamplingController, _ seconds: Range<Int> = 0..<40, metersPerSecond: Double = 30, trip: TripID? = nil
  ) -> Int {
    seconds.count { second in
      let fix = Fix(
        coordinate: Coordinate(latitude: 48 + Double(second) * metersPerSecond / 111_000, longitude: 11)!,
        timestamp: Timestamp(milliseconds: 1_763_680_000_000 + Int64(second) * 1000), accuracy: 5,
        speed: metersPerSecond)
      return controller.takes(fix, trip: trip)
    }
  }

  private func controller(_ device: DeviceState, _ advice: Sampling? = nil, isWatched: Bool = false)
    -> SamplingController
  {
    let controller = SamplingController(.standard)
    controller.report(device)
    controller.advised(advice, isWatched: isWatched)
    return controller
  }

  private let charging = DeviceState(isCharging: true)

  @Test("on a trip the hub's advice makes it send no more seldom, off one it does")
  func advice() {
    let seldom = Sampling(interval: 8, minDistance: 50)
    #expect(taken(controller(charging, seldom), trip: "T1") == 20, "every 2 s")
    #expect(taken(controller(charging, seldom)) == 5, "every 8 s")
  }

  @Test("without advice, and with one that wants more, the mode's interval holds; watched, the hub's")
  func mode() {
    let full = DeviceState(batteryLevel: 1)
    let often = Sampling(interval: 1, minDistance: 1)
    #expect(taken(controller(charging)) == 20 && taken(controller(charging, often)) == 20)
    #expect(taken(controller(full)) == 10 && taken(controller(full, often)) == 10, "balanced: every 4 s")
    #expect(taken(controller(DeviceState(batteryLevel: 0.1))) == 2, "ultra low: every 30 s")
    #expect(taken(controller(full, often, isWatched: true)) == 40)
  }

  @Test("a trip and its end count at once, on the caller's thread; the first fix of a trip goes out always")
  func trips() {
    let controller = controller(DeviceState(batteryLevel: 1, motion: .still))
    #expect(taken(controller, 0..<9) == 1, "power saver: every 10 s")
    #expect(controller.wish.current == PowerPolicy.standard.powerSaver)
    #expect(taken(controller, 9..<19, trip: "T1") == 5)
    #expect(controller.wish.current == PowerPolicy.standard.highPerformance)
    controller.moved("T2", to: .completed)
    #expect(controller.wish.current == PowerPolicy.standard.highPerformance, "another one's end")
    controller.moved("T1", to: .completed)
    #expect(controller.wish.current == PowerPolicy.standard.powerSaver)
  }

  @Test("a driver who stands is heard all the same")
  func standing() {
    #expect(taken(controller(DeviceState(batteryLevel: 1, motion: .still)), 0..<120, metersPerSecond: 0) == 5)
  }
}
