// What only control rooms are told, in binary.
import HubBytes
import HubGeo

extension BinaryWriter {
  /// Whose it is its channel says, unless it is another one.
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
}
