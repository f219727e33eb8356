// A fence's body: what is taken, what is refused and how, and that what is shown may be put again.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@Suite struct FenceBodies {
  private func fence(_ text: String, id: String = "F") throws(MessageError) -> Fence {
    let bytes = Array(text.utf8)
    return try bytes.span.withUnsafeBytes { (bytes) throws(MessageError) in
      try MessageReader().readFence(bytes, id: Identifier(id)!)
    }
  }

  @Test(
    "what a fence is shown as may be put again, and is the same fence",
    arguments: [
      #"{"circle":{"latitude":48.3538,"longitude":-11.7861,"radius":1500}}"#,
      #"{"fenceId":"F","kind":"hazard","title":"Düne \"7\"","circle":{"latitude":0,"longitude":180,"radius":0.5},"speedLimit":13.9}"#,
      #"{"kind":"area","polygon":{"type":"Polygon","coordinates":[[[0,0],[4,0],[4,4],[0,4],[0,0]],[[1,1],[2,1],[1,2],[1,1]]]},"dwell":1}"#,
      #"{"polygon":{"type":"MultiPolygon","coordinates":[[[[0,0],[4,0],[4,4],[0,0]]],[[[9,9],[9.123456789,9],[9,8],[9,9]]]]}}"#,
      #"{"polygon":{"type":"Feature","geometry":{"type":"Polygon","coordinates":[[[179,0],[-179,0],[180,4],[179,0]]]}}}"#,
      #"{"corridor":{"route":"_p~iF~ps|U_ulLnnqC_mqNvxq`@","width":60},"drivers":{"status":"on_trip","vehicleType":"van","tags":["a","b"]}}"#,
      #"{"corridor":{"route":[{"latitude":1,"longitude":2},{"latitude":1.5,"longitude":2}],"width":20000}}"#,
      #"{"kind":"roaming","distance":150.5,"drivers":{"tags":["guard"]},"others":{"status":"available"}}"#,
    ])
  func again(text: String) throws {
    let read = try fence(text)
    var shown = ByteBuffer()
    JSONWriter.write(
      FenceReport(fence: read, updated: Timestamp(milliseconds: 1_763_680_000_000), inside: 3), time: .unixMilliseconds,
      into: &shown)
    #expect(try fence(String(decoding: shown.array(), as: UTF8.self)) == read)
  }

  private static func ring(_ count: Int) -> String {
    let positions = (0..<count - 1).map { index -> String in
      let there = at(48, 11).destination(
        bearingDegrees: Double(index) * 360 / Double(count - 1), distanceMeters: 500)
      return "[\(there.longitude),\(there.latitude)]"
    }
    return "[" + (positions + [positions[0]]).joined(separator: ",") + "]"
  }

  @Test("1,000 positions are taken")
  func many() throws {
    let read = try fence(#"{"polygon":{"type":"Polygon","coordinates":[\#(Self.ring(1_000))]}}"#)
    #expect(read.positionCount == 1_000)
  }

  @Test(
    "what is no fence is refused, with the member and what would be right",
    arguments: [
      ("{}", "bad_message", "circle"), ("[]", "bad_message", "a fence"), ("{", "bad_json", ""),
      (#"{"circle":{"latitude":48,"longitude":11,"radius":0}}"#, "bad_message", "radius"),
      (#"{"circle":{"latitude":48,"longitude":11,"radius":-1}}"#, "bad_message", "radius"),
      (#"{"circle":{"latitude":48,"longitude":11,"radius":10000000}}"#, "bad_message", "1,000,000"),
      (#"{"circle":{"latitude":48,"longitude":11}}"#, "bad_message", "radius"),
      (#"{"circle":{"latitude":98,"longitude":11,"radius":5}}"#, "invalid_location", "latitude"),
      (#"{"circle":{"latitude":48,"longitude":11,"radius":5},"corridor":{}}"#, "bad_message", "exactly one"),
      (#"{"circle":{"latitude":48,"longitude":11,"radius":5},"distance":5}"#, "bad_message", "exactly one"),
      (#"{"circle":{"latitude":48,"longitude":11,"radius":5},"dwell":0.5}"#, "bad_message", "dwell"),
      (#"{"circle":{"latitude":48,"longitude":11,"radius":5},"dwell":86401}"#, "bad_message", "dwell"),
      (#"{"circle":{"latitude":48,"longitude":11,"radius":5},"speedLimit":0}"#, "bad_message", "speedLimit"),
      (#"{"circle":{"latitude":48,"longitude":11,"radius":5},"speedLimit":91}"#, "bad_message", "speedLimit"),
      (#"{"circle":{"latitude":48,"longitude":11,"radius":5},"kind":"zone"}"#, "bad_message", "kind"),
      (#"{"circle":{"latitude":48,"longitude":11,"radius":5},"fenceId":"G"}"#, "bad_message", "fenceId"),
      (#"{"circle":{"latitude":48,"longitude":11,"radius":5},"drivers":{"status":"free"}}"#, "bad_message", "status"),
      (#"{"circle":{"latitude":48,"longitude":11,"radius":5},"drivers":{"tags":"a"}}"#, "bad_message", "tags"),
      (#"{"polygon":{"type":"Polygon","coordinates":[[[0,0],[4,0],[4,4],[0,4]]]}}"#, "bad_message", "last position"),
      (
        #"{"polygon":{"type":"Polygon","coordinates":[[[0,0],[4,4],[4,0],[0,4],[0,0]]]}}"#, "bad_message", "crosses"
      ),
      (#"{"polygon":{"type":"Polygon","coordinates":[[[0,0],[4,4],[8,8],[0,0]]]}}"#, "bad_message", "no area"),
      (#"{"polygon":{"type":"Polygon","coordinates":[\#(ring(1_001))]}}"#, "too_large", "1,000"),
      (#"{"polygon":{"type":"Polygon","coordinates":[\#(ring(10_000))]}}"#, "too_large", ""),
      (#"{"corridor":{"route":"_p~iF~ps|U","width":5}}"#, "bad_message", "route"),
      (#"{"corridor":{"route":"_p~iF~ps|U??","width":5}}"#, "bad_message", "two different"),
      (#"{"corridor":{"route":"_p~iF~ps|U_ulLnnqC","width":0}}"#, "bad_message", "width"),
      (#"{"corridor":{"route":"_p~iF~ps|U_ulLnnqC","width":20001}}"#, "bad_message", "width"),
      (#"{"corridor":{"width":5}}"#, "bad_message", "route"),
      (#"{"kind":"roaming"}"#, "bad_message", "distance"),
      (#"{"kind":"roaming","distance":0}"#, "bad_message", "distance"),
      (#"{"kind":"roaming","distance":1001}"#, "bad_message", "1,000"),
      (#"{"kind":"roaming","distance":5,"dwell":60}"#, "bad_message", "dwell"),
      (#"{"kind":"roaming","distance":5,"speedLimit":10}"#, "bad_message", "speedLimit"),
      (#"{"kind":"roaming","distance":5,"circle":{}}"#, "bad_message", "circle"),
    ])
  func bad(text: String, code: String, part: String) {
    do throws(MessageError) {
      _ = try fence(text)
      Issue.record("\(text.prefix(80)) was taken")
    } catch {
      #expect("\(error.code.name)" == code, "\(error.text)")
      #expect(part.isEmpty || error.text.contains(part), "\(error.text)")
    }
  }

  @Test("a corridor of more than 1,000 places is too large")
  func longCorridor() throws {
    let route = try Route(points: (0...1_000).map { at(48 + Double($0) * 1e-4, 11) })
    #expect(throws: MessageError.self) { try fence(#"{"corridor":{"route":"\#(route.polyline)","width":5}}"#) }
  }
}
