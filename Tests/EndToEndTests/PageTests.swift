// The pages, and what they get before they have a credential.
import Foundation
import HubGateway
import HubPages
import HubTestSupport
import HubTiles
import Testing

extension EndToEnd {
  @Suite struct PagesOverHTTP {}
}

extension EndToEnd.PagesOverHTTP {
  private func get(_ hub: TestHub, _ target: String, _ fields: String = "") throws -> HTTPResponse {
    try hub.request("GET \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(fields)\r\n")
  }

  @Test("each file is served with its type and its tag, and asked for again by its tag it is not sent again")
  func files() throws {
    let hub = try TestHub()
    for (name, file) in Pages.files {
      let plain = try get(hub, "/\(name)")
      #expect(plain.status == 200 && plain.body == file.bytes)
      #expect(plain.fields["content-type"] == "\(file.type)" && plain.fields["cache-control"] == "no-cache")
      #expect(plain.fields["vary"] == "Accept-Encoding" && plain.fields["content-encoding"] == nil)
      let packed = try get(hub, "/\(name)", "Accept-Encoding: br, gzip\r\n")
      #expect(packed.fields["content-encoding"] == "gzip" && gunzip(packed.body) == file.bytes)
      #expect(packed.fields["etag"] != plain.fields["etag"])
      for tag in [plain.fields["etag"], packed.fields["etag"]] {
        let again = try get(hub, "/\(name)", "If-None-Match: W/\(try #require(tag))\r\n")
        #expect(again.status == 304 && again.body.isEmpty && again.fields["etag"] == plain.fields["etag"])
      }
    }
  }

  @Test("a page may run the hub's scripts and have the hub's answers, and nothing else")
  func policy() throws {
    let hub = try TestHub { $0.pages?.map.tiles = MapTiles(url: "https://tiles.example/{z}/{x}/{y}.png") }
    let page = try get(hub, "/hub.js")
    #expect(
      page.fields["content-security-policy"]
        == "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: https://tiles.example; "
        + "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        + "require-trusted-types-for 'script'")
    #expect(page.fields["x-content-type-options"] == "nosniff" && page.fields["referrer-policy"] == "no-referrer")
  }

  @Test("pages of all origins may have the client, and nothing else")
  func origins() throws {
    let hub = try TestHub()
    let foreign = "Origin: https://elsewhere.example\r\n"
    for name in ["hub.js", "hub-areas.js", "hub-binary.js", "hub-http.js", "hub-store.js", "hub.d.ts"] {
      let client = try get(hub, "/\(name)", foreign)
      #expect(client.status == 200 && client.fields["access-control-allow-origin"] == "*")
    }
    #expect(try get(hub, "/v1/about", foreign).status == 403)
    // With an origin that may use the hub there is still one such field, as browsers want.
    let own = try get(hub, "/hub.js", "Origin: http://localhost\r\n")
    #expect(own.fields["access-control-allow-origin"] == "*")
  }

  @Test("pages that are not there say so, and so does a hub without pages")
  func missing() throws {
    let hub = try TestHub()
    for (path, name) in [("/", "index.html"), ("/track/T1", "track.html")] {
      let answer = try get(hub, path)
      #expect(answer.status == (Pages.files[name] == nil ? 404 : 200))
      if answer.status == 404 { #expect(answer.errorMessage == "this hub was built without \(name)") }
    }
    #expect(try hub.request("POST /hub.js HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 405)
    let without = try TestHub { $0.pages = nil }
    for path in ["/", "/hub.js", "/track/T1", "/v1/about", "/streets"] { #expect(try get(without, path).status == 404) }
    #expect(try get(without, "/healthz").status == 200)
  }

  @Test("about says what a page must know, and nothing of drivers or sessions")
  func about() throws {
    let hub = try TestHub {
      let streets = try Streets([Street(.arterial, [at(43.5, 7), at(44, 7.5)])], attribution: nil)
      $0.pages?.map.streets = streets
      $0.pages?.map.box = streets.box
      $0.pages?.map.attribution = "© someone"
    }
    let about = try get(hub, "/v1/about")
    #expect(about.status == 200 && about.fields["cache-control"] == "no-store")
    #expect(Set(about.json.keys) == ["release", "devAuth", "time", "map"])
    #expect(about.json["release"] as? String == Release.name && about.json["devAuth"] as? Bool == true)
    #expect(abs(try #require(about.json["time"] as? Double) / 1000 - Date().timeIntervalSince1970) < 60)
    let map = try #require(about.json["map"] as? [String: Any])
    #expect(map["box"] as? [Double] == [7, 43.5, 7.5, 44] && map["streets"] as? String == "/streets")
    #expect(map["center"] as? [String: Double] == ["latitude": 43.75, "longitude": 7.25])
    #expect(map["attribution"] as? String == "© someone" && map["tiles"] == nil)
    let streets = try get(hub, "/streets")
    #expect((streets.json["ways"] as? [Any])?.count == 1 && streets.fields["etag"] != nil)
    #expect(try get(hub, "/streets/14/1/1").status == 404)
    // Where nobody may use development's credentials, for the name that it is asked by, no page offers them.
    let elsewhere = "GET /v1/about HTTP/1.1\r\nHost: hub.example\r\nConnection: close\r\n\r\n"
    #expect(try hub.request(elsewhere).json["devAuth"] as? Bool == false)
    let plain = try TestHub()
    #expect(try #require(try get(plain, "/v1/about").json["map"] as? [String: Any]).isEmpty)
    #expect(try get(plain, "/streets").status == 404)
  }

  @Test("the origin of --public-url is the hub's own")
  func publicURL() throws {
    let files = ["--public-url", "https://hub.example/"]
    let hub = try HubProcess.serve(files)
    func status(_ origin: String) throws -> Int {
      let connection = try RawConnection(port: hub.port)
      try connection.send(
        "GET /v1/about HTTP/1.1\r\nHost: hub.example\r\nConnection: close\r\nOrigin: \(origin)\r\n\r\n")
      return try connection.readResponse().status
    }
    #expect(try status("https://hub.example") == 200 && status("https://HUB.example:443") == 200)
    #expect(try status("http://hub.example") == 403 && status("https://hub.example:8443") == 403)
    for wrong in ["hub.example", "https://hub.example/path", "ws://hub.example", "*"] {
      #expect(try HubProcess.run(["serve", "--dev-auth", "--public-url", wrong]).status == 2)
    }
  }

  @Test("streets come out of a file, and a file that can't be used keeps the hub from starting")
  func streets() throws {
    let directory = try JournalDirectory()
    defer { withExtendedLifetime(directory) {} }
    let folder = URL(filePath: directory.path)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try "id,lat,lon\n1,43.1,7.1\n2,43.2,7.2\n".write(
      to: folder.appending(path: "a_nodes.csv"), atomically: true, encoding: .utf8)
    let edges = folder.appending(path: "a_edges.csv")
    try "from,to,class\n1,2,primary\n".write(to: edges, atomically: true, encoding: .utf8)
    let hub = try HubProcess.serve(["--streets", edges.path, "--attribution", "© us"])
    let connection = try RawConnection(port: hub.port)
    try connection.send("GET /streets HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    let answer = try connection.readResponse()
    #expect(answer.text.hasPrefix(#"{"attribution":"© us","ways":[{"c":2,"p":""#))
    try "from,to,class\n1,3,primary\n".write(to: edges, atomically: true, encoding: .utf8)
    let refused = try HubProcess.run(["serve", "--dev-auth", "--streets", edges.path])
    #expect(refused.status == 2 && refused.errors.contains("line 2 goes to crossing 3"))
    #expect(try HubProcess.run(["serve", "--dev-auth", "--streets", "x.csv"]).status == 2)
    #expect(try HubProcess.run(["serve", "--dev-auth", "--no-pages", "--streets", edges.path]).status == 2)
    #expect(try HubProcess.run(["serve", "--dev-auth", "--tiles", "https://tiles.example/{z}"]).status == 2)
    let none = try HubProcess.run(["serve", "--dev-auth", "--tiles", "/nowhere.pmtiles"])
    #expect(none.status == 2 && none.errors.contains("cannot use /nowhere.pmtiles: open: No such file or directory"))
  }
}

extension EndToEnd.PagesOverHTTP {
  @Test("a folder's images are served by a thread beside the loops, with a tag, uncompressed, and nothing for none")
  func images() throws {
    let directory = try JournalDirectory()
    defer { withExtendedLifetime(directory) {} }
    let image = [UInt8]((0..<4000).map { UInt8($0 / 100) })  // what compression would make smaller
    let folder = URL(filePath: directory.path + "/3/5")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try Data(image).write(to: folder.appending(path: "2.png"))
    try FileManager.default.createDirectory(at: folder.appending(path: "3.png"), withIntermediateDirectories: true)
    let pack = try TilePack(directory.path)
    let hub = try TestHub { $0.pages?.map.tiles = MapTiles(pack) }
    let map = try #require(try get(hub, "/v1/about").json["map"] as? [String: Any])
    #expect(map["tiles"] as? String == "/tiles/{z}/{x}/{y}" && map["zooms"] as? [Int] == [3, 3])
    let found = try get(hub, "/tiles/3/5/2", "Accept-Encoding: gzip\r\n")
    #expect(found.status == 200 && found.body == image && found.fields["content-encoding"] == nil)
    #expect(found.fields["content-type"] == "image/png" && found.fields["cache-control"] == "max-age=3600")
    #expect(found.fields["x-content-type-options"] == "nosniff")
    let again = try get(hub, "/tiles/3/5/2", "If-None-Match: \(try #require(found.fields["etag"]))\r\n")
    #expect(again.status == 304 && again.body.isEmpty)
    for missing in ["3/0/0", "2/0/0", "9/1/1"] { #expect(try get(hub, "/tiles/\(missing)").status == 204) }
    for wrong in ["3/8/0", "-1/0/0", "3/5/2.png", "3/5/..", "27/0/0"] {
      let answer = try get(hub, "/tiles/\(wrong)")
      #expect(answer.status == 404 && answer.errorMessage == "an image is /tiles/<zoom>/<x>/<y>")
    }
    #expect(try get(hub, "/tiles/3/5/3").status == 204, "a folder with an image's name")
    for path in ["/tiles/3/5/2", "/tiles/3/0/0"] {
      #expect(try get(hub, path).fields["cross-origin-resource-policy"] == "same-origin")
    }
    #expect(try get(hub, "/tiles/3/5/2", "Origin: https://elsewhere.example\r\n").status == 403)
    let policy = try #require(try get(hub, "/hub.js").fields["content-security-policy"])
    #expect(policy.contains("img-src 'self' data:;"))
    for without in [try TestHub(), try TestHub { $0.pages = nil }] {
      #expect(try get(without, "/tiles/3/5/2").status == 404)
    }
  }

  @Test("the demo says where its page is, and shows its city, its fences, and trips with routes")
  func demo() throws {
    let demo = try HubProcess(["demo", "--port", "0", "--drivers", "60", "--seed", "4"])
    let line = try demo.readLine()
    let address = try #require(line.firstMatch(of: #/^http://127\.0\.0\.1:([0-9]+)/ /#))
    let port = try #require(UInt16(address.1))
    func get(_ target: String) throws -> HTTPResponse {
      let connection = try RawConnection(port: port)
      try connection.send("GET \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
      return try connection.readResponse()
    }
    let map = try #require(try get("/v1/about").json["map"] as? [String: Any])
    #expect(map["streets"] as? String == "/streets" && map["box"] != nil)
    #expect((try get("/streets").json["ways"] as? [Any])?.count ?? 0 > 5000)
    #expect(try get("/v1/fences/central-station?role=ops&id=o1").json["title"] as? String == "Central station")
    #expect(try get("/v1/fences/market?role=ops&id=o1").json["title"] as? String == "Market")
    let deadline = Deadline()
    var routed = false
    while !routed, !deadline.isOver {
      let trips =
        try get("/v1/trips?role=ops&id=o1&status=trip_started,driver_en_route").json["trips"] as? [[String: Any]]
      guard let id = trips?.first?["tripId"] as? String else { continue }
      let trip = try get("/v1/trips/\(id)?role=ops&id=o1").json
      routed = trip["route"] is String && trip["pickup"] != nil && trip["dropoff"] != nil && trip["riderId"] != nil
    }
    #expect(routed)
    demo.send(signal: SIGINT)
    #expect(try demo.outcome().status == 0)
  }
}
