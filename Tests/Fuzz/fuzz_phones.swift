// modules: HubBytes HubHTTP HubGeo HubMessages
// libFuzzer entry for what phone apps send (run.sh in this folder builds and runs it): no input may crash the readers,
// and what they read is within what a fix may have.
import HubBytes
import HubGeo
import HubHTTP
import HubMessages

nonisolated(unsafe) private let reader = MessageReader()  // libFuzzer calls from one thread only

/// The first byte chooses the format, the rest is the body, or OsmAnd's parameters as a form.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzPhones(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
  guard size > 0, let format = PhoneFormat(rawValue: data[0] % 4) else { return 0 }
  let body = UnsafeRawBufferPointer(start: data + 1, count: size - 1)
  var report = PhoneReport(format)
  switch format {
  case .osmAnd:
    do throws(HTTPError) {
      let parameters = try Query(Array(body)[...]).items()
      precondition(parameters.count <= HTTPLimits.parameters)
      report = PhoneReport(osmAnd: parameters, now: Timestamp(milliseconds: 1_763_680_000_000))
    } catch { return 0 }
  case .ownTracks, .traccar, .overland:
    do throws(MessageError) { report = try reader.readPhone(body, format) } catch { return 0 }
  }
  for case .success(let fix) in report.fixes {
    precondition(Timestamp.accepted.contains(fix.timestamp) && fix.timestamp >= Timestamp.earliestFromClients)
    precondition((-90...90).contains(fix.coordinate.latitude) && (-180...180).contains(fix.coordinate.longitude))
    for value in [fix.speed, fix.accuracy, fix.heading, fix.batteryLevel] {
      precondition(value.map { $0 >= 0 && $0.isFinite } ?? true)
    }
    precondition((fix.heading ?? 0) < 360 && (fix.batteryLevel ?? 0) <= 1)
  }
  return 0
}
