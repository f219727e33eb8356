// Messages for control rooms, in binary.
import HubBytes
import HubGeo

extension BinaryWriter {
  /// Writes a raw fix; leaves out the driver where the channel names it.
  static func write(
    _ fix: RawFix, of publication: borrowing Publication, _ handle: UInt32, _ room: inout ByteRoom
  ) {
    let saysDriver = publication.channel != .raw(fix.driverID)
    room.append(BinaryServerType.rawFix.rawValue)
    room.append(varint: UInt64(handle))
    room.append(
      flagByte(
        fix.accuracy != nil, fix.heading != nil, fix.speed != nil, fix.source != nil, fix.reason != nil,
        fix.offset != nil, saysDriver))
    if saysDriver { room.append(fix.driverID) }
    room.append(fix.verdict.rawValue)
    room.append(lowestOf: publication.timestamp)
    room.append(fix.coordinate)
    room.append(fix.timestamp)
    if let accuracy = fix.accuracy { room.append(centi: accuracy) }
    if let heading = fix.heading { room.append(heading: heading) }
    if let speed = fix.speed { room.append(centi: speed) }
    if let source = fix.source { room.append(source.rawValue) }
    if let reason = fix.reason { room.append(reason.rawValue) }
    if let offset = fix.offset { room.append(centi: offset) }
  }

  /// Writes no channel number, since the block names the channel; a cell is its number within the block.
  static func write(_ update: CountsUpdate, at published: Timestamp, _ buffer: inout ByteBuffer) {
    buffer.append(values: { room in
      room.append(BinaryServerType.countsUpdate.rawValue)
      room.append(update.isFull ? 0x01 : 0)
      room.append(binary: update.block)
      room.append(lowestOf: published)
      room.append(varint: update.tick)
      room.append(varint: UInt64(update.cells.count))
    })
    for cell in update.cells {
      buffer.append(values: { room in
        room.append(varint: cell.cell.bits & (1 << UInt64(5 * CountsUpdate.depth) - 1))
        for count in [cell.available, cell.onTrip, cell.unavailable, cell.background, cell.offline] {
          room.append(varint: UInt64(clamping: count))
        }
      })
    }
  }
}
