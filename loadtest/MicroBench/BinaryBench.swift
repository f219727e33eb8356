// What the pieces of binary messages work on: the values of the JSON pieces.
import Bytes
import Geo
import Messages

struct BinaryBench {
  let trip: Identifier
  /// The location_update of `MicroBench.message`.
  let update: [UInt8]
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
    let fix = Fix(
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

  private static func area(around place: Coordinate, at time: Timestamp) -> Publication {
    let cell = GeohashCell(place, precision: 6)
    let drivers = (0..<100).map { number -> AreaUpdate.Driver in
      // As pseudonyms are: p and 13 characters of the geohash alphabet.
      let name = "p4kd02nx7t9w\(10 + number % 90)"
      let steps = (Double(number * 37 % 100), Double(number * 61 % 100))
      guard let id = Identifier(name),
        let coordinate = Coordinate(
          latitude: rounded(cell.box.south + steps.0 * 5e-5), longitude: rounded(cell.box.west + steps.1 * 1e-4))
      else { preconditionFailure("a place and an id") }
      return AreaUpdate.Driver(
        driverID: id, coordinate: coordinate, heading: Double(number * 3), speed: Double(number % 15),
        status: .available, timestamp: Timestamp(milliseconds: time.milliseconds - 400 - Int64(number) * 7))
    }
    return Publication(
      channel: .area(cell), number: 812, timestamp: time,
      body: .areaUpdate(AreaUpdate(cell: cell, tick: 4711, isFull: true, drivers: drivers, more: 12)))
  }
}
