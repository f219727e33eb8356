// What the pieces of binary messages work on: the values of the JSON pieces.
import HubBytes
import HubGeo
import HubMessages

struct BinaryBench {
  let trip: Identifier
  /// The location_update of `MicroBench.message`.
  let update: [UInt8]
  let fix: Fix
  /// What the position leaves out.
  let names: ImpliedNames
  /// 100 drivers in a cell of 6 characters.
  let area: Publication

  init(_ position: Publication, _ trip: Identifier) {
    guard case .driverLocation(let location) = position.body else { preconditionFailure("it is a position") }
    self.trip = trip
    names = ImpliedNames(
      driverID: location.driverID, tripID: trip,
      lagMilliseconds: location.lagMilliseconds(publishedAt: position.timestamp))
    fix = Fix(
      coordinate: location.coordinate, timestamp: Timestamp(milliseconds: 1_763_680_000_000), accuracy: 5.2,
      heading: 0.5, speed: 10.01)
    var buffer = ByteBuffer()
    BinaryWriter.write(
      .locationUpdate(LocationUpdate(tripID: trip, fix: fix)), messageID: MessageID(number: 17_123),
      timestamp: Timestamp(milliseconds: 1_763_680_000_123), tripBefore: trip, into: &buffer)
    update = buffer.array()
    area = BinaryBench.area(around: location.coordinate, at: position.timestamp)
  }

  /// As the hub rounds it.
  private static func rounded(_ degrees: Double) -> Double { (degrees * 1e7).rounded() / 1e7 }

  func rounded(latitude: Double, longitude: Double) -> Coordinate {
    guard
      let place = Coordinate(latitude: BinaryBench.rounded(latitude), longitude: BinaryBench.rounded(longitude))
    else { preconditionFailure("a place not far from the first") }
    return place
  }

  private static func area(around place: Coordinate, at time: Timestamp) -> Publication {
    let cell = GeohashCell(place, precision: 6)
    // As drivers are: without a pattern that compression could find and that is not there.
    var chance: UInt64 = 1
    func next(below limit: Int) -> Int {
      chance = chance &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int((chance >> 33) % UInt64(limit))
    }
    let digits = Array("0123456789bcdefghjkmnpqrstuvwxyz")
    let drivers = (0..<100).map { _ -> AreaUpdate.Driver in
      let name = "p" + String((0..<13).map { digits[next(below: $0 == 0 ? 16 : 32)] })
      let steps = (Double(next(below: 10_000)) / 100, Double(next(below: 10_000)) / 100)
      guard let id = Identifier(name),
        let coordinate = Coordinate(
          latitude: rounded(cell.box.south + steps.0 * 5e-5), longitude: rounded(cell.box.west + steps.1 * 1e-4))
      else { preconditionFailure("a place and an id") }
      return AreaUpdate.Driver(
        driverID: id, coordinate: coordinate, heading: Double(next(below: 360)), speed: Double(next(below: 15)),
        status: .available, timestamp: Timestamp(milliseconds: time.milliseconds - Int64(next(below: 4000))))
    }
    return Publication(
      channel: .area(cell), number: 812, timestamp: time,
      body: .areaUpdate(AreaUpdate(cell: cell, tick: 4711, isFull: true, drivers: drivers, more: 12)))
  }
}
