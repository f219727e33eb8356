// Where the repository and the built hub are.
import Foundation
import Glibc
import HubTransport

@testable import HubLoadTestKit

/// The folder of Package.swift.
let repositoryFolder = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(
  separator: "/")

/// The hub that was built with these tests: it lies beside their bundle.
let builtHub: String? = {
  var parts = URL(filePath: CommandLine.arguments[0]).path.split(separator: "/", omittingEmptySubsequences: false)
  for _ in 0..<4 {
    parts.removeLast()
    let candidate = parts.joined(separator: "/") + "/locationhub"
    if access(candidate, X_OK) == 0 { return candidate }
    if parts.isEmpty { return nil }
  }
  return nil
}()

/// A run with figures that a report can show.
func sampleRun(_ scenario: String = "trip", connections: Double = 100) -> RunResult {
  RunResult(
    scenario: scenario, about: "one fix in, one position out", settings: ["drivers 100"], hub: "/hub",
    startedAt: 1_763_680_000_000,
    figures: [
      .sent: 1000, .expected: 1000, .delivered: 1000, .conflated: 0, .lost: 0, .duplicated: 0, .outOfOrder: 0,
      .errors: 0, .latencyP50: 41, .latencyP99: 1890.5, .latencyMax: 20_000, .cpuPerFix: 17.25, .cpuPerDelivery: 17.25,
      .connections: connections, .bytesPerConnection: 418, .fixesPerSecond: 100, .deliveriesPerSecond: 100,
      .harnessCores: 0.25, .latenessP99: 80,
    ],
    parts: [
      .init(second: 0, delivered: 100, p50: 40, p99: 1800, maximum: 2000),
      .init(second: 1, delivered: 100, p50: 42, p99: 1900, maximum: 20_000),
    ],
    buckets: [.init(microseconds: 40, count: 500), .init(microseconds: 2000, count: 500)], invalid: [], violations: [])
}
