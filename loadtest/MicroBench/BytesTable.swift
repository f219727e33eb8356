// How many bytes messages have in each form: payloads, without the frame's header. What JSON is compressed to is what
// the hub sends to those who agreed to permessage-deflate without contexts.
import HubBytes
import HubGeo
import HubMessages
import HubWebSocket

struct BytesTable {
  private let compression = MessageCompression(for: .withoutContexts, as: .server)
  private let bench: BinaryBench
  private let position: Publication

  init(_ position: Publication, _ bench: BinaryBench) {
    self.position = position
    self.bench = bench
  }

  func print() {
    line("message", "JSON", "deflated", "binary")
    publication("driver_location", position)
    publication("eta_update", other(.etaUpdate(eta)))
    publication("trip_update", other(.tripUpdate(move)))
    publication("area_update, 100 drivers", bench.area)
    update()
    batch(100)
  }

  private func line(_ name: String, _ figures: String...) {
    let columns = figures.map { String(repeating: " ", count: max(0, 10 - $0.count)) + $0 }
    Swift.print(name + String(repeating: " ", count: max(0, 28 - name.count)) + columns.joined())
  }

  private func row(_ name: String, _ json: [UInt8], _ binary: Int) {
    _ = json.withUnsafeBytes { compression.compress($0, minimumBytes: 0) }
    line(name, "\(json.count)", "\(compression.compressedBytes)", "\(binary)")
  }

  private func publication(_ name: String, _ publication: Publication) {
    var json = ByteBuffer()
    var binary = ByteBuffer()
    JSONWriter.write(publication, time: .unixMilliseconds, into: &json)
    BinaryWriter.write(publication, handle: 4711, names: bench.names, into: &binary)
    row(name, json.array(), binary.count)
  }

  private func other(_ body: Publication.Body) -> Publication {
    Publication(channel: position.channel, number: position.number, timestamp: position.timestamp, body: body)
  }

  private var eta: ETAUpdate {
    ETAUpdate(
      tripID: bench.trip, target: .dropoff, eta: 611, distance: 5012,
      arrivalTime: Timestamp(milliseconds: position.timestamp.milliseconds + 611_400), basis: .route, after: 6)
  }

  private var move: TripUpdate {
    TripUpdate(
      tripID: bench.trip, status: .arrivedPickup, previousStatus: .driverEnRoute, driverID: bench.names.driverID,
      timestamp: position.timestamp, location: bench.fix.coordinate, sequence: 4)
  }

  private func update() {
    client("location_update", .locationUpdate(LocationUpdate(tripID: bench.trip, fix: bench.fix)))
  }

  /// A drive of 4 s a fix.
  private func batch(_ count: Int) {
    let fixes = (0..<count).map { number -> Result<Fix, ErrorCode> in
      var fix = bench.fix
      let ahead = Double(number) * 37 + Double(number * 7919 % 13)
      fix.coordinate = bench.rounded(
        latitude: fix.coordinate.latitude + ahead * 1e-5, longitude: fix.coordinate.longitude - ahead * 7e-6)
      fix.timestamp.milliseconds += Int64(number) * 4000
      fix.accuracy = Double(420 + number * 7919 % 331) / 100
      fix.speed = Double(910 + number * 6007 % 477) / 100
      fix.heading = Double(27_000 + number * 4001 % 997) / 100
      return .success(fix)
    }
    client("location_batch, \(count) fixes", .locationBatch(LocationBatch(tripID: bench.trip, fixes: fixes)))
  }

  private func client(_ name: String, _ message: ClientMessage) {
    var json = ByteBuffer()
    var binary = ByteBuffer()
    let sent = position.timestamp
    guard let id = MessageID("d17-123") else { preconditionFailure("letters and digits are an id") }
    JSONWriter.write(message, messageID: id, timestamp: sent, time: .unixMilliseconds, into: &json)
    BinaryWriter.write(
      message, messageID: MessageID(number: 17_123), timestamp: sent, tripBefore: bench.trip, into: &binary)
    row(name, json.array(), binary.count)
  }
}
