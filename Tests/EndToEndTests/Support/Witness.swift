// A driver and its rider who do everything right while others do not: they must miss nothing.
import Testing

final class Witness {
  private let driver: Peer
  private let rider: Peer
  private var step = 0

  init(_ hub: TestHub) throws {
    driver = try hub.driver("good-driver")
    rider = try hub.rider("good-rider")
    try rider.subscribe("trip:good-trip")
    try driver.sendFix(0, trip: "good-trip")
    _ = try rider.receive("trip_update")
    _ = try rider.receive("driver_location")
  }

  /// One more fix goes through, as the next thing that the rider hears, and the driver hears nothing.
  func check(sourceLocation: SourceLocation = #_sourceLocation) throws {
    step += 1
    try driver.sendFix(step, trip: "good-trip")
    let position = try rider.receive("driver_location")
    #expect(position.integer("timestamp") == Peer.firstFix + step * 1000, sourceLocation: sourceLocation)
    #expect(try driver.settle().isEmpty, sourceLocation: sourceLocation)
  }
}
