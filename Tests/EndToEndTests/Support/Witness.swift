// A driver and its rider who do everything right while others do not: they must miss nothing.
import Testing

final class Witness {
  private let driver: Peer
  private let rider: Peer
  private var step = 0

  private let trip: String

  init(_ hub: TestHub) throws {
    driver = try hub.driver("good-driver")
    rider = try hub.rider("good-rider")
    trip = "good-trip"
    try begin()
  }

  /// One of several.
  init(port: UInt16, number: Int) throws {
    driver = try Peer(port: port, query: "role=driver&id=good-\(number)")
    rider = try Peer(port: port, query: "role=rider&id=good-\(number)")
    trip = "good-\(number)"
    for peer in [driver, rider] { _ = try peer.receive("connected") }
    try begin()
  }

  private func begin() throws {
    try rider.subscribe("trip:\(trip)")
    try driver.sendFix(0, trip: trip)
    _ = try rider.receive("trip_update")
    _ = try rider.receive("driver_location")
  }

  /// One more fix goes through, as the next thing that the rider hears, and the driver hears nothing but `sampling`.
  func check(sourceLocation: SourceLocation = #_sourceLocation) throws {
    step += 1
    try driver.sendFix(step, trip: trip)
    let position = try rider.receive("driver_location")
    #expect(position.integer("timestamp") == Peer.firstFix + step * 1000, sourceLocation: sourceLocation)
    // Advice about how often to send comes when it will.
    #expect(try driver.settle().allSatisfy { $0.type == "sampling" }, sourceLocation: sourceLocation)
  }
}
