// The built hub-loadtest as a process: what it writes and how it ends.
import Foundation
import Testing

@testable import HubLoadTestKit

@Suite struct CommandTests {
  /// Runs it in the repository's folder; output and errors together.
  private func run(_ words: [String]) throws -> (status: Int32, text: String) {
    let hub = try #require(builtHub, "locationhub is not beside the test bundle")
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: hub).deletingLastPathComponent().appendingPathComponent("hub-loadtest")
    process.arguments = words
    process.currentDirectoryURL = URL(fileURLWithPath: repositoryFolder)
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus, text)
  }

  /// A folder of its own, gone afterwards.
  private func withFolder(_ body: (String) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hub-loadtest-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try body(folder.path)
  }

  @Test("a run leaves a table, JSON that can be read, and a page")
  func scenario() throws {
    try withFolder { folder in
      let outcome = try run([
        "trip", "--drivers", "5", "--rate", "5", "--warm-up", "0.1", "--duration", "0.5", "--lateness-bound", "100s",
        "--json", folder + "/a.json", "--html", folder + "/a.html",
      ])
      #expect(outcome.status == 0 && outcome.text.contains("positions delivered"), "\(outcome.text)")
      let results = try Results(parsing: readText(folder + "/a.json"), file: "a.json")
      #expect(results.runs.count == 1 && results.runs[0].isGood && results.runs[0][.sent] > 10)
      #expect(try readText(folder + "/a.html").hasPrefix("<!doctype html>"))
    }
  }

  private static let short = [
    "trip", "--drivers", "5", "--rate", "5", "--warm-up", "0.1", "--duration", "0.5", "--lateness-bound", "100s",
  ]

  @Test("a hub against itself is two hubs, A and B")
  func againstItself() throws {
    try withFolder { folder in
      let hub = try #require(builtHub, "locationhub is not beside the test bundle")
      let file = folder + "/a.json"
      let outcome = try run(Self.short + ["--executable", hub, "--against", hub, "--rounds", "2", "--json", file])
      #expect(outcome.status == 0 && outcome.text.contains("A is \(hub) (2 runs), B is \(hub) (2 runs)"))
      let results = try Results(parsing: readText(file), file: file)
      #expect(results.runs.map { $0.hub.first } == ["A", "B", "B", "A"])
      #expect(try run(["compare", file]).text.contains("A is A \(hub) (2 runs), B is B \(hub) (2 runs)"))
    }
  }

  @Test("what cannot be written or started is reported before anything runs")
  func checkedBefore() throws {
    let file = try run(Self.short + ["--html", "/no/folder/a.html"])
    #expect(file.status == 1)
    #expect(file.text == "hub-loadtest: cannot write /no/folder/a.html: No such file or directory\n")
    for words in [Self.short, ["figures"], ["growth"], ["bench"], ["capacity"], ["abuse"], ["abuse-search"]] {
      #expect(try run(words + ["--executable", "/no/hub"]).status == 2, "\(words)")
    }
    #expect(try run(Self.short + ["--against", "/no/hub"]).status == 2)
    for verb in ["figures", "growth", "capacity"] {
      let outcome = try run([verb, "--json", "/no/folder/a.json"])
      #expect(outcome.status == 1 && outcome.text.contains("cannot write"), "\(verb): \(outcome.text)")
    }
  }

  @Test("what was measured before a run fails is in the file")
  func keptAsItGoes() throws {
    try withFolder { folder in
      // The first time it is a hub.
      let hub = folder + "/hub"
      try write(
        """
        #!/bin/sh
        [ -e "$0.ran" ] && exit 1
        touch "$0.ran"
        exec '\(try #require(builtHub, "locationhub is not beside the test bundle"))' "$@"
        """, to: hub)
      chmod(hub, 0o755)
      let file = folder + "/a.json"
      let outcome = try run(Self.short + ["--executable", hub, "--rounds", "2", "--json", file])
      #expect(outcome.status == 1 && outcome.text.contains("did not say where it listens"), "\(outcome.text)")
      #expect(try Results(parsing: readText(file), file: file).runs.count == 1)
    }
  }

  @Test("a run that is not valid ends with 1 and says why")
  func invalid() throws {
    let outcome = try run([
      "trip", "--drivers", "5", "--rate", "20", "--warm-up", "0", "--duration", "0.5", "--lateness-bound", "0.1us",
    ])
    #expect(outcome.status == 1 && outcome.text.contains("NOT VALID: the load was late"), "\(outcome.text)")
  }

  @Test("compare ends with 1 where something got worse, and with 0 where nothing did")
  func compare() throws {
    try withFolder { folder in
      for (file, factor) in [("a", 1.0), ("b", 2.0)] {
        let runs = (0..<5).map { number in
          var run = sampleRun()
          run.startedAt += Double(number)
          run.figures[.cpuPerFix] = (17 + Double(number) / 10) * factor
          return run
        }
        try write(Results(machine: "", runs: runs).json, to: "\(folder)/\(file).json")
      }
      let (a, b) = (folder + "/a.json", folder + "/b.json")
      #expect(try run(["compare", a, b]).status == 1)
      #expect(try run(["compare", a, a]).status == 0)
      #expect(try run(["compare", b, a]).text.contains("better"))
      try write(Results(machine: "", runs: [sampleRun("fan-out")]).json, to: folder + "/c.json")
      #expect(try run(["compare", a, folder + "/c.json"]).status == 2)
      #expect(try run(["compare", folder + "/c.json", folder + "/c.json"]).status == 2, "too few to tell")
      var lossy = sampleRun("fan-out")
      lossy.violations = ["lost: 3"]
      try write(Results(machine: "", runs: [lossy]).json, to: folder + "/lossy.json")
      #expect(try run(["compare", folder + "/c.json", folder + "/lossy.json"]).status == 1)
      var broken = sampleRun()
      broken.invalid = ["too busy"]
      try write(Results(machine: "", runs: [broken]).json, to: folder + "/nv.json")
      let outcome = try run(["compare", folder + "/nv.json", b])
      #expect(outcome.status == 2 && outcome.text.contains("no valid run of trip in \(folder)/nv.json"), "\(outcome)")
      #expect(try run(["figures", "--from", a]).text.contains("was not written by `figures --json`"))
      #expect(try run(["report", a, b, "--html", folder + "/r.html"]).status == 0)
    }
  }

  @Test("help names every scenario; what is asked for wrongly ends with 2")
  func usage() throws {
    let help = try run(["--help"])
    #expect(help.status == 0 && help.text.contains("reconnect-storm"))
    for words in [
      ["nowhere"], ["trip", "--drivers", "x"], ["compare"], ["report"], ["bench", "--speed", "1"],
      ["figures", "--only", "x"], ["figures", "--from", "a", "--rounds", "3"], ["abuse", "--nope", "1"],
      ["growth", "--rounds", "0"], ["capacity", "--drivers", "5,20,80"], [], ["help", "nowhere"],
      ["abuse", "--only", "outside", "--attack", "star"], ["capacity", "--drivers", "500,x,2000"],
      ["capacity", "--drivers", "500,x,2000,8000"], ["figures", "--scale", "100"], ["capacity", "--fixes", "1e-9"],
    ] {
      #expect(try run(words).status == 2, "\(words)")
    }
    for words in [["trip", "--help"], ["figures", "--help"], ["compare", "--help"], ["help", "abuse"], ["help"]] {
      let help = try run(words)
      #expect(help.status == 0 && help.text.hasPrefix("usage: "), "\(words): \(help.text)")
    }
    #expect(try run(["compare", "/no/file"]).status == 2)
    #expect(try run(["figures", "--from", "/no/file"]).status == 1)
  }
}
