// Parameters that an endpoint does not know, and those that are given twice.
import HubMessages
import Testing

extension EndToEnd {
  @Suite struct Parameters {}
}

extension EndToEnd.Parameters {
  @Test(
    "an endpoint refuses a parameter that it does not know, by its name",
    arguments: [
      "/v1/drivers/nearby?latitude=1&longitude=1&limit=1&lat=2", "/v1/drivers/within?bbox=1,1,2,2&lat=2",
      "/v1/drivers/d1?lat=2", "/v1/trips?lat=2", "/v1/trips/t1?lat=2", "/v1/trips/t1/track.csv?lat=2",
      "/v1/fences?lat=2",
      "/v1/fences/f1?lat=2",
    ])
  func unknown(target: String) throws {
    let hub = try TestHub()
    let answer = try hub.get("\(target)&role=ops&id=o1")
    #expect(answer.status == 400 && answer.errorCode == "bad_message", "\(answer.text)")
    #expect(answer.errorMessage?.contains("no parameter lat here") == true, "\(answer.text)")
    let twice = try hub.get("\(target.replacing("lat=2", with: "time=apple"))&time=apple&role=ops&id=o1")
    #expect(twice.status == 400 && twice.errorMessage == "time is given twice", "\(twice.text)")
    #expect(try hub.get("\(target.replacing("lat=2", with: "time=apple"))&role=ops&id=o1").status != 400)
  }

  @Test("so do a POST and an upgrade; health and metrics pass over what they do not know")
  func others() throws {
    let hub = try TestHub()
    let fix = #"{"latitude":1,"longitude":1,"accuracy":5,"timestamp":1763680000000}"#
    for target in ["/v1/locations?role=driver&id=d1", "/v1/trips?role=ops&id=o1"] {
      let answer = try hub.post("\(target)&tme=apple", fix)
      #expect(answer.status == 400 && answer.errorMessage?.contains("no parameter tme here") == true)
    }
    #expect(try hub.post("/v1/locations?role=driver&id=d1", fix).status == 200)
    let begun = try hub.post("/v1/trips?role=ops&id=o1&driver=d1", "{}")
    #expect(begun.status == 400 && begun.errorMessage?.contains("no parameter driver here") == true)
    let upgrade = try hub.request(UpgradeRequest("/v1/ws?role=rider&id=r1&tme=apple").text)
    #expect(upgrade.status == 400 && upgrade.errorMessage?.contains("only time, access_token, role, id") == true)
    let time = try hub.request(UpgradeRequest("/v1/ws?role=rider&id=r1&time=apple%").text)
    #expect(time.status == 400 && time.errorMessage == "time is not well encoded")
    for target in ["/healthz?x=1", "/readyz?x=1&x=2", "/metrics?x=1"] { #expect(try hub.get(target).status == 200) }
  }

  @Test("a token that is given twice is refused, whichever it is", arguments: loopCounts)
  func tokenTwice(loops: Int) throws {
    let tokens = try TokenHub(loops: loops)
    let token = try tokens.token(.ops, "o1")
    let twice = "access_token=\(token)&access_token=\(token)"
    for target in ["/v1/trips?\(twice)", "/v1/trips?access_token=x&access_token=\(token)"] {
      let answer = try tokens.hub.get(target)
      #expect(answer.status == 401 && answer.errorMessage == "give access_token once")
    }
    #expect(try tokens.hub.connect().statusOfUpgrade("/v1/ws?\(twice)") == 401)
    #expect(try tokens.hub.get("/v1/trips?access_token=\(token)").status == 200)
    let both = "GET /v1/trips?access_token=\(token) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n\r\n"
    #expect(try tokens.hub.request(both).status == 401)
  }

  @Test("what does not exist is 404 with not_found, and over the socket the same")
  func notFound() throws {
    let hub = try TestHub()
    for target in ["/v1/nothing", "/none", "/v1/drivers/nobody?role=ops&id=o1", "/v1/fences/none?role=ops&id=o1"] {
      let answer = try hub.get(target)
      #expect(answer.status == 404 && answer.errorCode == "not_found", "\(target)")
    }
    #expect(try hub.get("/v1/trips/none?role=ops&id=o1").errorCode == "unknown_trip")
    for isBinary in [false, true] {
      let ops = try hub.join(.ops, "o2", isBinary: isBinary)
      try ops.send("query", ["kind": "driver", "driverId": "nobody"])
      #expect(try ops.receive("error").code == "not_found")
    }
  }
}
