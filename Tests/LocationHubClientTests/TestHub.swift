// A real hub for the client's tests.
import Foundation
import FoundationNetworking
import HubCore
import HubGateway
import HubRuntime
import HubTransport
import Testing

/// A hub in this process, which ends with the test that made it.
final class TestHub {
  let server: Server

  init(_ change: (inout ServerConfiguration) throws -> Void = { _ in }) throws {
    var configuration = ServerConfiguration()
    configuration.port = 0
    configuration.loops = 1
    configuration.allowsDevelopmentCredentials = true
    configuration.logLevel = .error
    configuration.drainSeconds = 1
    configuration.limits.sessionRate = 0
    configuration.sampling = .fixed(seconds: 1)
    configuration.limits.closingSeconds = 0.3
    try change(&configuration)
    server = try Server.start(configuration)
  }

  deinit {
    server.drain()
    server.wait()
  }

  var port: UInt16 { server.address.port }

  /// Reads the metrics until they have these lines: what a test waits for may not have happened yet.
  func metrics(have lines: String...) async throws {
    let page = try #require(URL(string: "http://127.0.0.1:\(port)/metrics"))
    while true {
      let text = String(decoding: try await URLSession.shared.data(from: page).0, as: UTF8.self)
      if lines.allSatisfy({ text.contains("\n\($0)\n") }) { return }
    }
  }
}
