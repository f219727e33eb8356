// Messages for control rooms, in binary, as a client reads them.
import HubBytes
import HubGeo

extension BinaryServerReader {
  func readRawFix(_ input: inout BinaryInput) throws(ValidationError) -> Publication {
    let entry = try entry(&input)
    let flags = try input.byte(.verdict)
    let driver: Identifier
    if flags & 0x40 != 0 {
      driver = try input.identifier(.driverId)
    } else if case .raw(let id) = entry.channel {
      driver = id
    } else {
      throw ValidationError(.driverId, "neither the message nor its channel names the driver")
    }
    let verdict: RawFix.Verdict = try input.keyword(.verdict)
    let published = try time(lowest: try input.word32(.timestamp), input)
    var fix = RawFix(
      driverID: driver, coordinate: try input.coordinate(), timestamp: try input.timestamp(.timestamp),
      verdict: verdict)
    if flags & 0x01 != 0 { fix.accuracy = try input.hundredths(.accuracy) }
    if flags & 0x02 != 0 { fix.heading = try input.heading() }
    if flags & 0x04 != 0 { fix.speed = try input.hundredths(.speed) }
    if flags & 0x08 != 0 { fix.source = try input.keyword(.source) }
    if flags & 0x10 != 0 { fix.reason = try input.keyword(.reason) }
    if flags & 0x20 != 0 { fix.offset = try input.hundredths(.offset) }
    return Publication(channel: entry.channel, number: 0, timestamp: published, body: .rawFix(fix))
  }

  func readCounts(_ input: inout BinaryInput) throws(ValidationError) -> Publication {
    let flags = try input.byte(.full)
    let block = try input.block(.cell)
    let published = try time(lowest: try input.word32(.timestamp), input)
    var update = CountsUpdate(block: block, tick: try input.varint(.tick), isFull: flags & 0x01 != 0, cells: [])
    for _ in 0..<(try input.listCount(.cells)) {
      let number = try input.varint(.cell)
      let bits = UInt64(5 * CountsUpdate.depth)
      guard number < 1 << bits,
        let cell = GeohashCell(bits: block.bits << bits | number, precision: block.precision + CountsUpdate.depth)
      else { throw ValidationError(.cell, "expected the number of a cell within its block") }
      var counts = CountsUpdate.Cell(cell)
      counts.available = try input.smallCount(.available)
      counts.onTrip = try input.smallCount(.onTrip)
      counts.unavailable = try input.smallCount(.unavailable)
      counts.background = try input.smallCount(.background)
      counts.offline = try input.smallCount(.offline)
      update.cells.append(counts)
    }
    return Publication(channel: .countsBlock(block), number: 0, timestamp: published, body: .countsUpdate(update))
  }
}
