// A dense place: 2,000 free drivers within some hundred metres of `DearMessage.place`, who send their place over HTTP,
// so that queries and maps there have much to show; and a trip with a long route.
import HubBytes
import HubCommandLine
import HubGeo
import HubLoadTestKit
import HubMessages
import HubSystem
import HubTransport

final class Crowd: EventLoopDelegate {
  private static let size = 2000
  /// Seconds after which their places are sent again, before the hub takes them for offline.
  private static let interval: Int64 = 25_000_000_000
  /// Requests that are not answered yet.
  private static let window = 8
  private static let patience: Int64 = 5_000_000_000
  /// How each answer begins.
  private static let good = Array("HTTP/1.1 200".utf8)

  private let loop: EventLoop
  private let address: SocketAddress
  private var sentAt = Int64.min / 2
  private var id = ConnectionID.none
  private var isOpen = false
  private var answers = 0
  /// The end of what came, which may be a part of a mark.
  private var tail: [UInt8] = []

  init(_ address: SocketAddress) throws(LoadTestError) {
    self.address = address
    do throws(SystemError) { loop = try EventLoop() } catch { throw .failed("no event loop: \(error)") }
    loop.delegate = self
  }

  private var now: Int64 { ClockReading.read().uptimeNanoseconds }

  /// Has all of them send their place, where that is due; some tenths of a second.
  func keep() throws(LoadTestError) {
    guard now - sentAt > Self.interval else { return }
    let isFirst = sentAt < 0
    sentAt = now
    answers = 0
    tail = []
    do throws(SystemError) { id = try loop.connect(address) } catch { throw .failed("no connection: \(error)") }
    let end = now + Self.patience
    if isFirst { beginTrip() }
    for number in 0..<Self.size {
      while now < end, !isOpen || answers <= number - Self.window { loop.runTurn(timeoutMilliseconds: 1) }
      guard now < end else { throw .failed("the hub takes no fixes of the crowd") }
      send(number)
    }
    while now < end, answers < Self.size { loop.runTurn(timeoutMilliseconds: 1) }
    guard answers == Self.size else { throw .failed("the hub takes no fixes of the crowd") }
    loop.abort(id)
    while isOpen { loop.runTurn(timeoutMilliseconds: 1) }
  }

  /// Behind it, in order, are the requests whose answers are counted.
  private func beginTrip() {
    while now - sentAt < Self.patience, !isOpen { loop.runTurn(timeoutMilliseconds: 1) }
    let route = DearMessage.longRoute.polyline.replacing("\\", with: "\\\\")
    post(
      "/v1/trips?role=ops&id=crowd",
      #"{"tripId":"\#(DearMessage.tripWithRoute)","riderId":"insider","route":"\#(route)"}"#)
  }

  private func post(_ target: String, _ body: String) {
    let start = loop.arena.count
    loop.arena.append(
      utf8: "POST \(target) HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    loop.send(start..<loop.arena.count, to: id)
  }

  private func send(_ number: Int) {
    let place = DearMessage.place.destination(
      bearingDegrees: Double(number * 137 % 360), distanceMeters: Double(number % 400))
    let body =
      #"{"latitude":\#(decimals(place.latitude, 6)),"longitude":\#(decimals(place.longitude, 6)),"accuracy":5,"#
      + #""timestamp":\#(ClockReading.read().unixMilliseconds)}"#
    post("/v1/locations?role=driver&id=crowd-\(number)", body)
  }

  func connected(_ id: ConnectionID) { isOpen = true }

  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    tail.append(contentsOf: bytes)
    var rest = tail[...]
    while let found = rest.firstRange(of: Self.good) {
      answers += 1
      rest = rest[found.upperBound...]
    }
    tail = Array(rest.suffix(Self.good.count - 1))
  }

  func closed(_ id: ConnectionID, _ cause: CloseCause) { isOpen = false }
  func overflowed(_ id: ConnectionID) { loop.abort(id) }
}
