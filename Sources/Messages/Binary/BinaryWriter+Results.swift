// Answers to queries in binary.
import HubBytes
import HubGeo

extension BinaryWriter {
  static func write(_ result: QueryResult, _ buffer: inout ByteBuffer) {
    switch result {
    case .driver(let report):
      buffer.append(UInt8(0))
      write(report, &buffer)
    case .drivers(let list):
      beginDrivers(list.drivers.count, &buffer)
      for report in list.drivers { write(report, &buffer) }
      endDrivers(more: list.more, &buffer)
    case .trip(let report):
      buffer.append(UInt8(2))
      write(report, &buffer)
    }
  }

  static func beginDrivers(_ count: Int, _ buffer: inout ByteBuffer) {
    buffer.append(UInt8(1))
    buffer.append(varint: UInt64(count))
  }

  static func endDrivers(more: Int, _ buffer: inout ByteBuffer) { buffer.append(varint: UInt64(clamping: more)) }

  private static func flags(_ report: DriverReport) -> UInt16 {
    var flags: UInt16 = report.vehicleType == nil ? 0 : 0x001
    if !report.tags.isEmpty { flags |= 0x002 }
    if let position = report.position {
      flags |= 0x004
      if position.heading != nil { flags |= 0x008 }
      if position.speed != nil { flags |= 0x010 }
      if position.accuracy != nil { flags |= 0x020 }
      if position.timestamp != nil { flags |= 0x040 }
      if position.timeSource == .hub { flags |= 0x800 }
    }
    if report.predicted != nil { flags |= 0x080 }
    if report.distance != nil { flags |= 0x100 }
    if let isOnline = report.isOnline { flags |= isOnline ? 0x600 : 0x200 }
    return flags
  }

  static func write(_ report: DriverReport, _ buffer: inout ByteBuffer) {
    buffer.append(values: { room in
      room.append(littleEndian: flags(report))
      room.append(report.driverID)
      room.append(report.status.rawValue)
      if let vehicleType = report.vehicleType { room.append(lengthAnd: vehicleType) }
    })
    if !report.tags.isEmpty { write(report.tags, &buffer) }
    buffer.append(values: { room in
      if let position = report.position {
        room.append(position.coordinate)
        if let heading = position.heading { room.append(heading: heading) }
        if let speed = position.speed { room.append(centi: speed) }
        if let accuracy = position.accuracy { room.append(centi: accuracy) }
        room.append(seconds: position.age)
        if let timestamp = position.timestamp { room.append(timestamp) }
      }
      if let predicted = report.predicted { room.append(predicted) }
      if let distance = report.distance { room.append(centi: distance) }
    })
  }

  /// Up to 8, each of 1–64 bytes.
  static func write(_ tags: [InlineText], _ buffer: inout ByteBuffer) {
    buffer.append(UInt8(truncatingIfNeeded: tags.count))
    for tag in tags { buffer.append(values: { $0.append(lengthAnd: tag) }) }
  }

  private static func write(_ report: TripReport, _ buffer: inout ByteBuffer) {
    buffer.append(values: { room in
      room.append(
        flagByte(
          report.ended != nil, report.driverID != nil, report.riderID != nil, report.pickup != nil,
          report.dropoff != nil, report.route != nil, report.summary != nil))
      room.append(report.tripID)
      room.append(report.status.rawValue)
      room.append(report.timestamp)
      room.append(report.created)
      room.append(report.updated)
      if let ended = report.ended { room.append(ended) }
    })
    buffer.append(values: { room in
      if let driver = report.driverID { room.append(driver) }
      if let rider = report.riderID { room.append(rider) }
      if let pickup = report.pickup { room.append(pickup) }
      if let dropoff = report.dropoff { room.append(dropoff) }
    })
    if let route = report.route { buffer.append(lengthAnd: route) }
    if let summary = report.summary { buffer.append(values: { write(summary, &$0) }) }
  }
}
