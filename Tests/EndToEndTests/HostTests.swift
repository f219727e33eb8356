// Under which names, and by which way, the hub takes requests that need no secret: a web page whose name was made to
// point at this machine (DNS rebinding) gets nothing, nor does whoever comes through a proxy.
import Foundation
import HubGateway
import HubMessages
import HubTransport
import Testing

extension EndToEnd {
  @Suite struct Hosts {}
}

extension EndToEnd.Hosts {
  private static let strange = [
    "evil.example:8080", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8080", "192.0.2.1", "hub",
    "[2001:db8::1]:8080",
  ]
  private static let targets = ["/metrics", "/metrics?role=ops&id=o1", "/v1/drivers/nearby?role=ops&id=o1&limit=1"]

  private func get(
    _ hub: TestHub, _ target: String, host: String, port: UInt16? = nil, _ fields: String = ""
  ) throws -> HTTPResponse {
    let connection = try RawConnection(port: port ?? hub.port)
    try connection.send("GET \(target) HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\(fields)\r\n")
    return try connection.readResponse()
  }

  private func status(_ hub: TestHub, upgradeWith fields: (String, String)...) throws -> (Int, String?) {
    let connection = try hub.connect()
    var request = UpgradeRequest("/v1/ws?role=ops&id=o1")
    for (name, value) in fields { request = request.with(name, value) }
    try connection.send(request.text)
    let answer = try connection.readResponse()
    return (answer.status, answer.errorMessage)
  }

  @Test("under a strange name neither development credentials nor open metrics are given", arguments: loopCounts)
  func rebinding(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    for host in Self.strange {
      for target in Self.targets {
        let answer = try get(hub, target, host: host)
        #expect(answer.status == 401 && answer.errorCode == "unauthorized", "\(host) \(target)")
        #expect(answer.errorMessage?.contains("--allow-host") == true, "it says why")
      }
      let (status, message) = try status(hub, upgradeWith: ("Host", host))
      #expect(status == 401 && message?.contains("--allow-host") == true, "\(host)")
      #expect(try get(hub, "/healthz", host: host).status == 200)
    }
    for host in ["127.0.0.1:\(hub.port)", "127.9.9.9", "LocalHost", "localhost:1", "[::1]:80", "[::1]"] {
      #expect(try get(hub, "/metrics", host: host).status == 200, "\(host)")
      #expect(try get(hub, "/v1/drivers/d1?role=ops&id=o1", host: host).status == 404, "\(host)")
      #expect(try status(hub, upgradeWith: ("Host", host)).0 == 101, "\(host)")
    }
    #expect(try hub.request("GET /metrics HTTP/1.0\r\n\r\n").status == 401, "no Host at all")
  }

  @Test("a name that the operator allows is taken, and a token needs none")
  func allowed() throws {
    let hub = try TestHub { for name in ["hub.internal", "2001:db8::7"] { _ = $0.hosts.allow(name) } }
    for host in ["hub.internal", "HUB.internal:8080", "[2001:db8::7]:80"] {
      #expect(try get(hub, "/metrics", host: host).status == 200)
      #expect(try get(hub, "/v1/drivers/d1?role=ops&id=o1", host: host).status == 404)
    }
    #expect(try get(hub, "/metrics", host: "other.internal").status == 401)
    let tokens = try TokenHub()
    let token = try tokens.token(.ops, "o1")
    for target in ["/metrics?access_token=\(token)", "/v1/trips?access_token=\(token)"] {
      #expect(try get(tokens.hub, target, host: "evil.example").status == 200, "it is the secret that counts")
    }
    #expect(try get(tokens.hub, "/metrics", host: "evil.example").status == 401)
  }

  @Test("the admin port shows its metrics under a strange name to nobody", arguments: loopCounts)
  func adminPort(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.adminPort = 0 }
    let port = try #require(hub.server.adminAddress?.port)
    for host in Self.strange {
      // An address is no name that a page could make its own.
      let isAddress = ["192.0.2.1", "[2001:db8::1]:8080"].contains(host)
      #expect(try get(hub, "/metrics", host: host, port: port).status == (isAddress ? 200 : 401), "\(host)")
      #expect(try get(hub, "/readyz", host: host, port: port).status == 200)
    }
    for host in ["127.0.0.1:\(port)", "localhost"] {
      #expect(try get(hub, "/metrics", host: host, port: port).status == 200)
    }
  }

  @Test("development credentials are not taken from behind a proxy, and the answer says why", arguments: loopCounts)
  func behindProxy(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let marks = [
      ("Forwarded", "for=192.0.2.1"), ("Via", "1.1 proxy"), ("X-Forwarded-For", "127.0.0.1"),
      ("X-Real-IP", "127.0.0.1"),
      ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "localhost"), ("x-forwarded-port", "443"),
      ("X-Forwarded-Server", "p"),
    ]
    for (name, value) in marks {
      for target in Self.targets {
        let answer = try get(hub, target, host: "localhost", "\(name): \(value)\r\n")
        #expect(answer.status == 401 && answer.errorCode == "unauthorized", "\(name) \(target)")
        #expect(answer.errorMessage?.contains("proxy") == true, "\(name) \(target)")
      }
      let (status, message) = try status(hub, upgradeWith: (name, value))
      #expect(status == 401 && message?.contains("proxy") == true, "\(name)")
    }
  }
}
