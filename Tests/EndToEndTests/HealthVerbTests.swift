// `locationhub health`: what it asks, what it says, and how it ends.
import Foundation
import HubGateway
import HubTestCertificates
import HubTransport
import Testing

extension EndToEnd {
  @Suite(.enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  struct HealthVerb {}
}

extension EndToEnd.HealthVerb {
  private func health(_ url: String, _ more: String...) throws -> ProcessOutcome {
    let patience = more.contains("--timeout") ? [] : ["--timeout", "60"]
    return try HubProcess.run(["health", "--url", url] + more + patience, within: 90)
  }

  @Test("a hub that serves is healthy and ready; one that drains is healthy, and says why it is not ready")
  func drain() throws {
    let hub = try HubProcess.serve(["--drain-delay", "60"])
    let url = "http://127.0.0.1:\(hub.port)"
    let (alive, ready) = (try health(url), try health("\(url)/", "--ready"))
    #expect(alive.status == 0 && alive.output == "healthy\n" && alive.errors.isEmpty)
    #expect(ready.status == 0 && ready.output == "ready\n" && ready.errors.isEmpty)
    #expect(try health("http://localhost:\(hub.port)").status == 0)
    hub.send(signal: SIGTERM)
    let deadline = Deadline()
    var draining = try health(url, "--ready")
    while draining.status == 0, !deadline.isOver { draining = try health(url, "--ready") }
    #expect(draining.status == 1 && draining.output.isEmpty)
    #expect(draining.errors.contains("/readyz: 503") && draining.errors.contains("shutting down"))
    #expect(try health(url).status == 0)
  }

  @Test("over TLS the certificate is checked for the host's name")
  func tls() throws {
    let authority = TestAuthority()
    let (certificate, key) = authority.issue(for: ["localhost"])
    let hub = try TestHub { $0.tls = try TLSServer([TLSCertificate(certificate: certificate, key: key)]) }
    let file = try TemporaryFile(String(decoding: authority.pem, as: UTF8.self))
    let good = try health("https://localhost:\(hub.port)", "--ca", file.path, "--ready")
    #expect(good.status == 0 && good.output == "ready\n", "\(good.errors)")
    for refused in [
      try health("https://localhost:\(hub.port)"), try health("https://127.0.0.1:\(hub.port)", "--ca", file.path),
    ] {
      #expect(refused.status == 1 && refused.errors.contains("certificate refused"), "\(refused.errors)")
    }
  }

  @Test("nobody there, one who is silent, one who hangs up, one who is no hub: exit code 1 and the reason")
  func others() throws {
    let listener = try Listener()
    let url = "http://127.0.0.1:\(listener.port)"
    let silent = try health(url, "--timeout", "0.2")
    #expect(silent.status == 1 && silent.errors.contains("no answer within 0.2 s"), "\(silent.errors)")
    _ = try listener.accept()
    for (answer, reason) in [
      ("", "hangs up without an answer"), ("SSH-2.0-OpenSSH_9.2\r\n\r\n", "no HTTP server"),
      ("HTTP/1.1 404 Not Found\r\n\r\nno such page\n", "404 no such page"),
      ("HTTP/1.1 404 Not Found\r\n\r\n\u{1B}[2Jno\u{9B}2J page\n", "404 \u{FFFD}[2Jno\u{FFFD}2J page"),
      ("HTTP/1.1 200 OK\r\n\r\n" + String(repeating: "x", count: 20_000), "more than a hub does"),
    ] {
      let process = try HubProcess(["health", "--url", url, "--timeout", "60"])
      let connection = try listener.accept()
      _ = try connection.receive()
      try connection.send(Array(answer.utf8))
      connection.close()
      let outcome = try process.outcome()
      #expect(outcome.status == 1 && outcome.errors.contains(reason), "\(outcome.errors)")
    }
    let nobody = try Listener(isDeaf: true)
    let refused = try health("http://127.0.0.1:\(nobody.port)")
    withExtendedLifetime(nobody) {}
    #expect(refused.status == 1 && refused.errors.contains("Connection refused"))
    let unknown = try health("http://hub.invalid:80")
    #expect(unknown.status == 1 && unknown.errors.contains("its name cannot be looked up"), "\(unknown.errors)")
  }

  @Test(
    "what is no address of a hub is refused", arguments: ["127.0.0.1:8080", "ftp://hub", "http://hub/v1/ws", "http://"])
  func addresses(url: String) throws {
    #expect(try health(url).status == 2)
  }
}
