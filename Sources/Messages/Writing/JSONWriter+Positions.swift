// Positions as JSON, the most frequent output. Their size is bounded, so each is written into room that is reserved
// once.
public import HubBytes
import HubGeo

extension JSONWriter {
  /// Appends a position with its envelope. Allocates nothing but for the buffer's growth.
  public static func write(_ position: PublishedPosition, time: TimeFormat, into buffer: inout ByteBuffer) {
    unsafe withUnsafePointer(to: position) { unsafe write(at: $0, time: time, into: &buffer) }
  }

  /// Appends a position in place with its envelope: as a value its 300 bytes would be copied.
  public static func write(
    at position: UnsafePointer<PublishedPosition>, time: TimeFormat, into buffer: inout ByteBuffer
  ) {
    guard let location = unsafe position.pointer(to: \.location) else { preconditionFailure("it has a location") }
    buffer.withRoom(for: MessageLimits.positionBytes) { room in
      room.append("{\"type\":\"driver_location\",\"payload\":{\"channel\":\"")
      unsafe room.append(position.pointee.channel)
      room.append("\",")
      unsafe writeMembers(at: location, time, &room)
      room.append("},\"timestamp\":")
      unsafe room.append(position.pointee.timestamp, as: time)
      room.append(",\"messageId\":\"p")
      unsafe room.append(integer: position.pointee.number)
      room.append("\"}")
    }
  }

  /// The members of a position, without a comma before them: in a publication and in a snapshot.
  @inline(__always)
  static func writeMembers(at location: UnsafePointer<DriverLocation>, _ time: TimeFormat, _ room: inout ByteRoom) {
    room.append("\"driverId\":\"")
    unsafe room.append(location.pointee.driverID.text)
    if let tripID = unsafe location.pointee.tripID {
      room.append("\",\"tripId\":\"")
      room.append(tripID.text)
    }
    room.append("\",\"latitude\":")
    unsafe room.append(degrees: location.pointee.coordinate.latitude)
    room.append(",\"longitude\":")
    unsafe room.append(degrees: location.pointee.coordinate.longitude)
    if let heading = unsafe location.pointee.heading {
      room.append(",\"heading\":")
      room.append(hundredths: heading)
    }
    if let speed = unsafe location.pointee.speed {
      room.append(",\"speed\":")
      room.append(hundredths: speed)
    }
    room.append(",\"accuracy\":")
    unsafe room.append(hundredths: location.pointee.accuracy)
    switch unsafe location.pointee.confidence {
    case .high: room.append(",\"confidence\":\"high\",\"timestamp\":")
    case .medium: room.append(",\"confidence\":\"medium\",\"timestamp\":")
    case .low: room.append(",\"confidence\":\"low\",\"timestamp\":")
    }
    unsafe room.append(location.pointee.timestamp, as: time)
    switch unsafe location.pointee.timeSource {
    case .fix: room.append(",\"age\":")
    case .hub: room.append(",\"timeSource\":\"hub\",\"age\":")
    }
    unsafe room.append(thousandths: location.pointee.age)
    room.append(",\"after\":")
    unsafe room.append(integer: location.pointee.after)
    if let status = unsafe location.pointee.status {
      room.append(",\"status\":\"")
      room.append(status.name)
      room.append("\"")
    }
  }
}
