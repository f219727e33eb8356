// Routes of requests: what is one, what is refused and how, in both of their forms.
import HubBytes
import HubGeo
import HubTestSupport
import Testing

@testable import HubMessages

@Suite struct RouteTests {
  private func read(_ route: String) throws -> TripStatusReport {
    let payload = #"{"tripId":"t","status":"requested","timestamp":1763680000001,"route":\#(route)}"#
    guard case .tripStatus(let report) = try readClient(envelope("trip_status", payload)).message else {
      throw Unexpected()
    }
    return report
  }

  private func code(_ route: String) -> ErrorCode? {
    errorCode(
      envelope("trip_status", #"{"tripId":"t","status":"requested","timestamp":1763680000001,"route":\#(route)}"#))
  }

  @Test("an encoded polyline is kept as it came, an array of places as one of 5 decimals")
  func forms() throws {
    let polyline = try #require(try read(#""_p~iF~ps|U_ulLnnqC_mqNvxq`@""#).route)
    #expect(polyline.polyline == "_p~iF~ps|U_ulLnnqC_mqNvxq`@")
    #expect(polyline.points == [at(38.5, -120.2), at(40.7, -120.95), at(43.252, -126.453)])
    let array = try #require(
      try read(#"[{"latitude":38.5,"longitude":-120.2},{"longitude":-120.95,"latitude":40.700004}]"#).route)
    #expect(array.points == [at(38.5, -120.2), at(40.7, -120.95)])
    #expect(try read("null").route == nil)
  }

  @Test(
    "what is no route is bad_message, and a place that is not on Earth is invalid_location",
    arguments: [
      #""""#, #""??""#, #""_p~iF""#, #""_p~iF~ps|U_""#, #""x y""#, #""\u00e9""#, #""_____________________""#, "7", "{}",
      "[]", #"[{"latitude":1,"longitude":2}]"#, "[1,2]", "[[11.5,48.1],[11.6,48.1]]",
      #"[{"latitude":1},{"longitude":2}]"#,
      #"["_p~iF~ps|U","_ulLnnqC"]"#, "true",
    ])
  func wrong(route: String) {
    #expect(code(route) == .badMessage, "\(route)")
    #expect(code(#"[{"latitude":1,"longitude":2},{"latitude":91,"longitude":2}]"#) == .invalidLocation)
  }

  @Test("5,000 places are a route in both forms; one more is too_large")
  func limit() throws {
    let points = (0..<5001).map { at(Double($0) / 1000, 11.5) }
    for count in [5000, 5001] {
      let polyline = Polyline.encode(points.prefix(count)).replacing(#"\"#, with: #"\\"#)
      let array = points.prefix(count).map { #"{"latitude":\#($0.latitude),"longitude":\#($0.longitude)}"# }
      for route in ["\"\(polyline)\"", "[" + array.joined(separator: ",") + "]"] {
        if count == 5000 {
          #expect(try read(route).route?.points.count == 5000)
        } else {
          #expect(code(route) == .tooLarge)
        }
      }
    }
  }

  @Test("random bytes are a route or refused, and what is one is read back as it was written")
  func fuzz() throws {
    var random = SplitMix64(seed: 21)
    var routes = 0
    for _ in 0..<20_000 {
      let length = Int.random(in: 0...40, using: &random)
      let bytes = (0..<length).map { _ in UInt8.random(in: 62...127, using: &random) }
      let text = String(decoding: bytes, as: UTF8.self)
      do throws(Route.Fault) {
        let route = try Route(polyline: text)
        routes += 1
        #expect(route.points.count >= 2)
        var buffer = ByteBuffer()
        let report = TripStatusReport(
          tripID: Identifier("t")!, status: .requested, timestamp: .earliestFromClients, route: route)
        JSONWriter.write(
          .tripStatus(report), messageID: MessageID("m")!, timestamp: report.timestamp, time: .unixMilliseconds,
          into: &buffer)
        let back = buffer.withBytes { String(decoding: $0, as: UTF8.self) }
        guard case .tripStatus(let read) = try? readClient(back).message else {
          Issue.record("not read back: \(back)")
          continue
        }
        #expect(read == report)
      } catch {}
    }
    #expect(routes > 100)
  }
}
