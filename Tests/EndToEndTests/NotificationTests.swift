// Notifications that are posted over HTTP, and what their readers get.
import Foundation
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite struct PostedNotifications {}
}

extension EndToEnd.PostedNotifications {
  private var ops: String { "/v1/notifications?role=ops&id=crm" }

  @Test(
    "a post reaches who follows the channel, in JSON and in binary, as an event with a number", arguments: loopCounts)
  func posted(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.driver("d1")
    try driver.subscribe("driver:d1")
    let body =
      #"{"channel":"driver:d1","kind":"hazard","title":"Ice","body":"Black ice","data":{"km":[12,14],"driverId":"d2"}}"#
    for number in 1...2 {
      let answer = try hub.post(ops, body)
      #expect(answer.status == 201 && answer.text == #"{"channel":"driver:d1","sequence":\#(number)}"#)
      let heard = try driver.receive("notification")
      #expect(heard.string("kind") == "hazard" && heard.string("body") == "Black ice")
      #expect(
        heard.object("data")?["km"] as? [Int] == [12, 14] && heard.object("data")?["driverId"] as? String == "d2")
      #expect(heard.integer("sequence") == number)
    }
    try hub.metrics { $0["notifications_posted_total"] == 2 }
  }

  @Test(
    "what is malformed, too large, unknown or not theirs is refused",
    arguments: [
      ("role=driver&id=d", "{}", 403, "forbidden"), ("role=rider&id=r", "{}", 403, "forbidden"),
      ("", "{}", 401, "unauthorized"), ("role=ops&id=o", "[]", 400, "bad_message"),
      ("role=ops&id=o", #"{"channel":"fleet","kind":"message","title":"t","body":"b"}"#, 400, "unknown_channel"),
      ("role=ops&id=o", #"{"channel":"driver:d1","kind":"speeding","title":"t","body":"b"}"#, 400, "bad_message"),
      ("role=ops&id=o", #"{"channel":"driver:d1","kind":"message","title":"","body":"b"}"#, 400, "bad_message"),
      ("role=ops&id=o", #"{"channel":"driver:d1","kind":"message","title":"t"}"#, 400, "bad_message"),
      (
        "role=ops&id=o", #"{"channel":"driver:d1","kind":"message","title":"t","body":"b","data":{"fenceId":"f"}}"#,
        400,
        "bad_message"
      ),
      (
        "role=ops&id=o", #"{"channel":"driver:d1","kind":"message","title":"t","body":"b","data":[1]}"#, 400,
        "bad_message"
      ),
      ("role=ops&id=o", #"{"channel":"driver:none","kind":"message","title":"t","body":"b"}"#, 404, "unknown_channel"),
      ("role=ops&id=o", #"{"channel":"trip:none","kind":"message","title":"t","body":"b"}"#, 404, "unknown_trip"),
    ])
  func refused(query: String, body: String, status: Int, code: String) throws {
    let hub = try TestHub()
    _ = try hub.driver("d1")
    let answer = try hub.post("/v1/notifications?\(query)", body)
    #expect(answer.status == status && answer.errorCode == code, "\(answer.text)")
  }

  @Test("a post is known by its Idempotency-Key as by its messageId, and has one of them")
  func keyed() throws {
    let hub = try TestHub()
    _ = try hub.driver("d1")
    func post(_ text: String, key: String?, more: String = "") throws -> HTTPResponse {
      let body = #"{"channel":"driver:d1","kind":"message","title":"t","body":"\#(text)"\#(more)}"#
      return try hub.request(
        "POST \(ops) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
          + (key.map { "Idempotency-Key: \($0)\r\n" } ?? "") + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }
    let first = try post("b", key: "k1")
    #expect(first.status == 201 && first.text == #"{"channel":"driver:d1","sequence":1}"#)
    for again in [try post("b", key: "k1"), try post("b", key: nil, more: #","messageId":"k1""#)] {
      #expect(again.status == 200 && again.text == first.text)
    }
    #expect(try post("other", key: "k1").status == 409)
    #expect(try post("b", key: "k2").status == 201)
    #expect(try post("b", key: "k1", more: #","messageId":"m1""#).errorCode == "bad_message")
  }

  @Test("each text has a size, and data a depth, beyond which a post is too large")
  func sizes() throws {
    let hub = try TestHub()
    _ = try hub.driver("d1")
    func post(title: Int = 1, body: Int = 1, data: String = "{}") throws -> HTTPResponse {
      let texts = [title, body].map { String(repeating: "x", count: $0) }
      return try hub.post(
        ops, #"{"channel":"driver:d1","kind":"message","title":"\#(texts[0])","body":"\#(texts[1])","data":\#(data)}"#)
    }
    let filler = String(repeating: "x", count: 4096 - 6)
    func nested(_ levels: Int) -> String {
      #"{"a":"# + String(repeating: "[", count: levels) + String(repeating: "]", count: levels) + "}"
    }
    #expect(try post(title: 256, body: 4096).status == 201 && post(data: #"{"a":"\#(filler)"}"#).status == 201)
    #expect(try post(data: nested(7)).status == 201)
    for answer in [
      try post(title: 257), try post(body: 4097), try post(data: #"{"a":"\#(filler)x"}"#), try post(data: nested(8)),
    ] { #expect(answer.status == 413 && answer.errorCode == "too_large") }
    #expect(try hub.request("GET \(ops) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").status == 405)
  }
}
