// Clients that ask before they send a body: RFC 9110 §10.1.1.
import Testing

extension EndToEnd {
  @Suite struct Expectations {}
}

extension EndToEnd.Expectations {
  private static let fix = #"{"latitude":1,"longitude":1,"accuracy":5,"timestamp":1763680000000}"#

  private static func head(_ target: String, length: Int = fix.utf8.count, _ more: String = "") -> String {
    "POST \(target) HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: \(length)\r\n\(more)\r\n"
  }

  @Test("a client that waits with a body that is wanted gets 100 Continue", arguments: loopCounts)
  func wanted(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let connection = try hub.connect()
    for _ in 0..<2 {
      try connection.send(Self.head("/v1/locations?role=driver&id=d1"))
      #expect(try connection.readResponse().status == 100)
      try connection.send(Self.fix)
      #expect(try connection.readResponse().status == 200)
    }
    // A body that is there already needs no leave.
    try connection.send(Self.head("/v1/locations?role=driver&id=d1") + Self.fix)
    #expect(try connection.readResponse().status == 200)
  }

  @Test(
    "and who may not send it has the answer at once, and the connection ends",
    arguments: [
      ("/v1/locations", 401), ("/v1/nothing", 404), ("/v1/fences?role=ops&id=o1", 405), ("/healthz", 405),
    ])
  func unwanted(target: String, status: Int) throws {
    let hub = try TestHub()
    let connection = try hub.connect()
    try connection.send(Self.head(target, length: 100_000))
    let answer = try connection.readResponse()
    #expect(answer.status == status && answer.fields["connection"] == "close")
    try connection.waitForEnd()
  }

  @Test("a body that is too large is refused before it is sent")
  func tooLarge() throws {
    let hub = try TestHub()
    let connection = try hub.connect()
    try connection.send(Self.head("/v1/locations?role=driver&id=d1", length: 300_000))
    #expect(try connection.readResponse().status == 413)
    try connection.waitForEnd()
  }

  @Test("an expectation that cannot be met is refused")
  func unknown() throws {
    let hub = try TestHub()
    let request = Self.head("/v1/locations?role=driver&id=d1").replacing("100-continue", with: "200-ok")
    let answer = try hub.request(request)
    #expect(answer.status == 417 && answer.errorCode == "bad_message")
    #expect(try hub.request(request.replacing("HTTP/1.1", with: "HTTP/1.0") + Self.fix).status == 200)
  }
}
