// ETAs as JSON. Their size is bounded, like a position's.
import HubBytes
import HubGeo

extension JSONWriter {
  /// Writes an ETA with its envelope.
  static func write(
    _ update: ETAUpdate, of publication: borrowing Publication, _ time: TimeFormat, _ room: inout ByteRoom
  ) {
    room.append("{\"type\":\"eta_update\",\"payload\":{\"channel\":\"")
    room.append(publication.channel)
    room.append("\",")
    writeMembers(update, time, &room)
    room.append("},\"timestamp\":")
    room.append(publication.timestamp, as: time)
    room.append(",\"messageId\":\"p")
    room.append(integer: publication.number)
    room.append("\"}")
  }

  /// The members of an ETA, without a comma before them: in a publication and in a snapshot.
  static func writeMembers(_ update: ETAUpdate, _ time: TimeFormat, _ room: inout ByteRoom) {
    room.append("\"tripId\":\"")
    room.append(update.tripID.text)
    room.append("\",\"target\":\"")
    room.append(update.target.name)
    room.append("\",\"eta\":")
    room.append(double: update.eta)
    room.append(",\"distance\":")
    room.append(double: update.distance)
    room.append(",\"arrivalTime\":")
    room.append(update.arrivalTime, as: time)
    room.append(",\"basis\":\"")
    room.append(update.basis.name)
    room.append("\",\"after\":")
    room.append(integer: update.after)
  }
}
