// Messages for control rooms, as a client reads them.
import HubBytes
import HubGeo

extension JSONTape {
  func rawFix(_ payload: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat) throws(ValidationError) -> RawFix {
    var fix = RawFix(
      driverID: try required(identifier(payload, .driverId, bytes), .driverId), coordinate: try coordinate(payload),
      timestamp: try required(timestamp(payload, .timestamp, bytes, time), .timestamp),
      verdict: try required(keyword(payload, .verdict, bytes, "expected the hub's verdict on a fix"), .verdict))
    fix.accuracy = try nonNegative(payload, .accuracy)
    fix.source = try keyword(payload, .source, bytes, "expected gps, wifi, cellular, fused or cached")
    fix.heading = try heading(payload)
    fix.speed = try nonNegative(payload, .speed)  // the phone's own, whatever it says
    fix.reason = try keyword(payload, .reason, bytes, "expected an error code")
    fix.offset = try nonNegative(payload, .offset)
    return fix
  }

  func countsUpdate(_ payload: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> CountsUpdate {
    guard case .countsBlock(let block)? = try channel(payload, bytes) else {
      throw ValidationError(.channel, "expected counts:<geohash>/<precision>")
    }
    var update = CountsUpdate(
      block: block, tick: try required(count(payload, .tick, bytes), .tick),
      isFull: try required(bool(payload, .full), .full), cells: [])
    try forEachObject(payload, .cells) { (members) throws(ValidationError) in
      let cell = try required(cell(at: present(members, .cell), .cell, bytes), .cell)
      guard cell.precision == block.precision + CountsUpdate.depth, cell.ancestor(precision: block.precision) == block
      else { throw ValidationError(.cell, "expected a cell of the block") }
      var counts = CountsUpdate.Cell(cell)
      counts.available = try required(smallCount(members, .available, bytes), .available)
      counts.onTrip = try required(smallCount(members, .onTrip, bytes), .onTrip)
      counts.unavailable = try required(smallCount(members, .unavailable, bytes), .unavailable)
      counts.background = try required(smallCount(members, .background, bytes), .background)
      counts.offline = try required(smallCount(members, .offline, bytes), .offline)
      update.cells.append(counts)
    }
    return update
  }
}
