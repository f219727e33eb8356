// What only control rooms are told, as JSON.
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
}
