// Messages for control rooms, as JSON.
import HubBytes
import HubGeo

extension JSONWriter {
  static func writeMembers(_ fix: RawFix, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append(",\"driverId\":", fix.driverID)
    buffer.append(",")
    buffer.append(members: fix.coordinate)
    buffer.append(",\"accuracy\":", fix.accuracy)
    buffer.append(",\"timestamp\":", fix.timestamp, as: time)
    buffer.append(",\"source\":", fix.source?.name)
    buffer.append(",\"heading\":", fix.heading)
    buffer.append(",\"speed\":", fix.speed)
    buffer.append(",\"verdict\":", fix.verdict.name)
    buffer.append(",\"reason\":", fix.reason?.name)
    buffer.append(",\"offset\":", fix.offset)
  }

  static func writeMembers(_ update: CountsUpdate, _ buffer: inout ByteBuffer) {
    buffer.append(",\"tick\":", update.tick)
    buffer.append(",\"full\":", update.isFull)
    buffer.append(",\"cells\":")
    buffer.append(list: update.cells) { buffer, cell in
      buffer.append("{\"cell\":", cell.cell)
      buffer.append(",\"available\":", cell.available)
      buffer.append(",\"on_trip\":", cell.onTrip)
      buffer.append(",\"unavailable\":", cell.unavailable)
      buffer.append(",\"background\":", cell.background)
      buffer.append(",\"offline\":", cell.offline)
      buffer.append("}")
    }
  }
}
