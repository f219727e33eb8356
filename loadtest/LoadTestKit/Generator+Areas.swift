// A part of the map: drivers that are free drive in circles within one cell, and riders watch that cell.
import Glibc
import HubBytes
import HubGeo
import HubSystem
import HubTransport

/// The cell, and where a driver is in it.
struct WatchedCell {
  /// Metres from one fix to the next: a second lies between them by the driver's clock.
  private static let stepMeters = 10.0

  let cell: GeohashCell
  private let middle: Coordinate
  private let radiusMeters: Double
  private let metersPerDegree: (latitude: Double, longitude: Double)

  init(characters: Int) {
    guard let place = Coordinate(latitude: 48.1371, longitude: 11.5754) else {
      preconditionFailure("a coordinate within its range")
    }
    cell = GeohashCell(place, precision: characters)
    middle = cell.center
    let latitude = 111_195.0  // of a degree, on a sphere of 6,371 km
    metersPerDegree = (latitude, latitude * cos(middle.latitude * .pi / 180))
    // Nobody leaves the cell: a circle of a quarter of its shorter side, round a place no further than an eighth from
    // the middle.
    radiusMeters =
      min(cell.heightDegrees * metersPerDegree.latitude, cell.widthDegrees * metersPerDegree.longitude) / 4
  }

  /// Where a driver is when it measures fix `number`: metres east and north of the middle, and its heading.
  private func place(_ driver: Int, _ number: Int) -> (east: Double, north: Double, heading: Double) {
    // By the golden ratio and the square root of 2 they are spread evenly, however many there are.
    let (across, up) = (spread(driver, 0.618_033_988_75), spread(driver, 0.414_213_562_37))
    let angle = 2.4 * Double(driver) + Double(number) * Self.stepMeters / radiusMeters
    let heading = (360 - angle * 180 / .pi).truncatingRemainder(dividingBy: 360)
    return (
      across * radiusMeters + radiusMeters * cos(angle), up * radiusMeters + radiusMeters * sin(angle),
      heading < 0 ? heading + 360 : heading
    )
  }

  /// −½ ..< ½.
  private func spread(_ driver: Int, _ step: Double) -> Double {
    (Double(driver) * step).truncatingRemainder(dividingBy: 1) - 0.5
  }

  /// The members of a fix.
  func appendFix(_ driver: Int, _ number: Int, to buffer: inout ByteBuffer) {
    let place = place(driver, number)
    buffer.append("\"latitude\":")
    buffer.append(fixed: middle.latitude + place.north / metersPerDegree.latitude, decimals: 7)
    buffer.append(",\"longitude\":")
    buffer.append(fixed: middle.longitude + place.east / metersPerDegree.longitude, decimals: 7)
    buffer.append(",\"accuracy\":5.2,\"heading\":")
    buffer.append(fixed: place.heading, decimals: 1)
    buffer.append(",\"speed\":10.01,\"timestamp\":")
    buffer.append(integer: Int64(FixTime.timestamp(number)))
  }
}

extension Generator {
  /// The time of an update is the tick's: how long after it this watcher had it.
  func areaUpdate(_ peer: PeerPointer, _ payload: UnsafeRawBufferPointer) {
    guard let tick = Scan.integer("\"tick\":", in: payload), let sent = Scan.envelopeTimestamp(payload) else {
      return counts.fail("an update of no tick: \(String(decoding: payload.prefix(300), as: UTF8.self))")
    }
    counts.areaUpdates += 1
    peer.pointee.updates += 1
    lastCame = loop.now.uptimeNanoseconds
    let isWhole = Scan.contains("\"full\":true", in: UnsafeRawBufferPointer(rebasing: payload.prefix(160)))
    if isWhole {
      counts.areaSnapshots += 1
    } else if tick == peer.pointee.tick {
      counts.duplicated += 1
    } else if tick < peer.pointee.tick {
      counts.outOfOrder += 1
    }
    // What has happened since is sent with the same tick's number, if it is not sent yet.
    peer.pointee.tick = max(peer.pointee.tick, isWhole ? tick - 1 : tick)
    newestTick = max(newestTick, peer.pointee.tick)
    let now = ClockReading.read()
    let taken = max(0, now.unixMilliseconds - Int64(sent)) * 1_000_000
    if let schedule, schedule.window.contains(now.uptimeNanoseconds - taken) {
      counts.spread.record(nanoseconds: taken)
    }
  }

  /// Counts, at the end, what the watchers should have had and had not.
  func countMissingUpdates() {
    counts.areaUpdatesMissing = watchers.reduce(0) { $0 + max(0, scenario.fewestUpdates - $1.pointee.updates) }
  }
}
