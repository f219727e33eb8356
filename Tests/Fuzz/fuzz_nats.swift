// modules: HubBytes HubGeo HubMessages HubHTTP HubCore HubTokens HubSystem HubTransport HubJournal
// modules: HubBackplane HubRuntime HubWebhooks
// libraries: ssl crypto
// libFuzzer entry for what a NATS server sends, as the reader and a stream's connection take it (run.sh in this folder
// builds and runs it).
//
// Input: one byte that says at how many places the rest is cut, the places, then what the server sends. Checked beyond
// not crashing: cuts change neither the operations nor the error; the connection answers no event that it was not
// given, and none twice.

import HubBytes
import HubMessages

@testable import HubWebhooks

/// Bytes in memory of their own, so that the address sanitizer sees a read beyond them.
private func withCopy<R>(_ bytes: ArraySlice<UInt8>, _ body: (UnsafeRawBufferPointer) -> R) -> R {
  let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
  defer { copy.deallocate() }
  copy.copyBytes(from: bytes)
  return body(UnsafeRawBufferPointer(copy))
}

private func pieces(_ data: ArraySlice<UInt8>, _ ends: [Int]) -> [ArraySlice<UInt8>] {
  var start = data.startIndex
  return (ends + [data.endIndex]).map { end in
    defer { start = end }
    return data[start..<end]
  }
}

private func read(_ pieces: [ArraySlice<UInt8>]) -> ([NATSOperation], NATSError?) {
  var reader = NATSReader()
  var operations: [NATSOperation] = []
  for piece in pieces {
    let error = withCopy(piece) { bytes -> NATSError? in
      do throws(NATSError) { try reader.read(bytes, into: &operations) } catch { return error }
      return nil
    }
    if let error { return (operations, error) }
  }
  return (operations, nil)
}

private func message(_ group: UInt64) -> StreamMessage {
  let body = HubMessages.Notification(
    kind: .fenceEnter, title: "t", body: "b", driverID: nil, leg: nil, sequence: 1)
  guard let id = Identifier("T\(group)"),
    let message = StreamMessage(
      Publication(
        channel: .trip(id), number: 1, timestamp: Timestamp(milliseconds: 0), body: .notification(body)),
      JournalPosition(group: group, record: 0), epoch: "e")
  else { preconditionFailure("both are right") }
  return message
}

private func checkConnection(_ pieces: [ArraySlice<UInt8>], isSecure: Bool) {
  guard let url = StreamURL(isSecure ? "tls://127.0.0.1" : "nats://127.0.0.1"),
    let filter = EventFilter(channels: [.all])
  else {
    preconditionFailure("both are right")
  }
  let now = Moment(uptime: 0, timestamp: Timestamp(milliseconds: 0))
  let connection = NATSConnection(StreamEndpoint(name: "f", url: url, filter: filter), inbox: "q")
  connection.opened(now)
  var group: UInt64 = 1
  var underWay: Set<JournalPosition> = []
  for piece in pieces {
    withCopy(piece) { connection.received($0, now) }
    if connection.isReady {
      let messages = [message(group), message(group + 1)]
      group += 2
      for message in messages { underWay.insert(message.place) }
      connection.send(messages, now)
    }
    for event in connection.takeEvents() {
      switch event {
      case .stored(let places, _), .refused(let places, _, _):
        for place in places { precondition(underWay.remove(place) != nil, "answered once") }
      case .impossible(let place, _): precondition(underWay.remove(place) != nil, "it was given")
      case .failed: return
      case .ready: break
      case .plainTextEnds:
        precondition(isSecure, "it was asked for")
        connection.secured()
      case .gone, .finished, .positionsRefused: preconditionFailure("NATS says no such thing")
      }
    }
  }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  guard count >= 1 else { return 0 }
  let data = [UInt8](UnsafeBufferPointer(start: start, count: count))
  let cuts = min(Int(data[0] & 7), count - 1)
  let body = data[(1 + cuts)...]
  let ends = data[1..<(1 + cuts)].map { body.startIndex + (body.isEmpty ? 0 : Int($0) % (body.count + 1)) }.sorted()
  let (whole, cut) = (read([body]), read(pieces(body, ends)))
  precondition(whole == cut, "cuts change nothing")
  for isSecure in [false, true] { checkConnection(pieces(body, ends), isSecure: isSecure) }
  return 0
}
