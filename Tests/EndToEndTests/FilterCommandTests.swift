// `locationhub filter` as a process: each fix, each Nth, and what is predicted between them.
import Foundation
import HubCore
import HubGeo
import HubMessages
import HubSimulation
import Testing

extension EndToEnd {
  @Suite(.enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  struct FilterCommand {}
}

extension EndToEnd.FilterCommand {
  /// A drive north-east with a bend and a long pause, as a file that goes with the test.
  private func withTrace(_ body: (String, [String]) throws -> Void) throws {
    var rows = ["t_ms,lat,lon,accuracy_m,speed_mps,bearing_deg"]
    var (latitude, longitude, heading) = (48.137, 11.575, 30.0)
    for second in Array(0..<90) + Array(120..<150) {
      heading += second > 40 && second < 60 ? 4 : 0
      latitude += 12 * cos(heading * .pi / 180) / 111_200
      longitude += 12 * sin(heading * .pi / 180) / 74_400
      rows.append("\(1_700_000_000_000 + second * 1000),\(latitude),\(longitude),5,12,\(heading)")
    }
    let file = FileManager.default.temporaryDirectory.appending(path: "trace-\(UUID().uuidString).csv")
    try rows.joined(separator: "\n").write(to: file, atomically: true, encoding: .utf8)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: file) } }
    try body(file.path, rows)
  }

  private func lines(_ arguments: [String]) throws -> [[String]] {
    let outcome = try HubProcess.run(["filter"] + arguments)
    #expect(outcome.status == 0 && outcome.errors.isEmpty)
    let lines = outcome.output.split(separator: "\n").map(String.init)
    #expect(lines.first == TraceFile.rowHeader)
    return lines.dropFirst().map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) }
  }

  @Test("--every N takes each Nth fix, as if the others had never been")
  func every() throws {
    try withTrace { path, rows in
      let thinned = try lines([path, "--every", "7"])
      let kept = stride(from: 1, to: rows.count, by: 7).map { rows[$0].prefix { $0 != "," } }
      #expect(thinned.map { $0[0][...] } == kept)
      let file = path + ".thin"
      let rest = [rows[0]] + stride(from: 1, to: rows.count, by: 7).map { rows[$0] }
      try rest.joined(separator: "\n").write(toFile: file, atomically: true, encoding: .utf8)
      defer { #expect(throws: Never.self) { try FileManager.default.removeItem(atPath: file) } }
      #expect(try lines([file]) == thinned)
    }
  }

  @Test("--accuracy adds a column, the radius in metres")
  func accuracy() throws {
    try withTrace { path, _ in
      let outcome = try HubProcess.run(["filter", "--accuracy", path])
      let lines = outcome.output.split(separator: "\n")
      #expect(lines.first == "t_ms,lat,lon,speed,bearing,accuracy")
      for line in lines.dropFirst() {
        #expect(try #require(Double(line.split(separator: ",", omittingEmptySubsequences: false)[5])) > 0)
      }
    }
  }

  @Test("--extrapolate prints the way between the positions, ten seconds far and no further")
  func extrapolate() throws {
    try withTrace { path, rows in
      let plain = try lines([path, "--every", "5"])
      let filled = try lines([path, "--every", "5", "--extrapolate", "500ms"])
      let times = filled.map { Int64($0[0])! }
      #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 && ($1 - $0 == 500 || $1 - $0 > 10_000) })
      #expect(filled.filter { plain.contains($0) } == plain)
      // The pause of 35 s is bridged for ten.
      #expect(times.contains(1_700_000_085_000 + 10_000) && !times.contains(1_700_000_085_000 + 10_500))
      // From the last position to the last fix of the trace.
      #expect(times.last == 1_700_000_149_000)
      let truth = Dictionary(
        uniqueKeysWithValues: rows.dropFirst().map { row in
          let field = row.split(separator: ",").map { Double($0)! }
          return (Int64(field[0]), Coordinate(latitude: field[1], longitude: field[2])!)
        })
      for row in filled.dropFirst(20) {
        guard let there = truth[Int64(row[0])!] else { continue }
        let place = Coordinate(latitude: Double(row[1])!, longitude: Double(row[2])!)!
        #expect(place.distance(to: there) < 10, "\(row)")
      }
      #expect(try lines([path, "--every", "5", "--extrapolate", "0.5s"]) == filled)
    }
  }

  @Test(
    "What can't be asked for is refused with exit code 2",
    arguments: [
      (["--every", "0"], "--every"), (["--extrapolate", "100"], "100ms"), (["--extrapolate", "0ms"], "1ms"),
      (["--extrapolate", "61s"], "60s"), (["--extrapolate", "xs"], "xs"), (["--extrapolate", "nans"], "nans"),
    ])
  func usage(arguments: [String], named: String) throws {
    let outcome = try HubProcess.run(["filter", "/dev/null"] + arguments)
    #expect(outcome.status == 2)
    #expect(outcome.errors.contains(named))
  }
}
