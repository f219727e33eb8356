// What the documents promise: the commands of the README, of protocol/tour.md and of deploy/README.md run as they stand
// there, the examples of protocol/ are understood by a hub, the sample settings are accepted, links lead somewhere, and
// the help is what it says.
import Foundation
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite(.enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  struct Documents {}
}

extension EndToEnd.Documents {
  @Test("the README's first commands run as they stand")
  func firstCommands() throws {
    let workplace = try Workplace()
    var script = workplace.moved(try Document("README.md").code("sh")) + "kill %1 %2; wait\n"
    script.replace(/export PATH=.*/, with: "export PATH=\"\(workplace.path):$PATH\"", maxReplacements: 1)
    let outcome = try workplace.run("/bin/bash", ["-e", workplace.write("first.sh", script)], within: 180)
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.output.matches(of: #/  area:\w+  /#).count == 12, "\(outcome.output)")
  }

  @Test("the tour runs as it stands", .enabled(if: Program.exists("curl"), "needs curl"))
  func tour() throws {
    let workplace = try Workplace()
    var script = workplace.moved(try Document("protocol/tour.md").code("sh")) + "wait\n"
    script.replace(/export PATH=.*/, with: "export PATH=\"\(workplace.path):$PATH\"", maxReplacements: 1)
    script.replace("curl -s", with: "curl -s --fail-with-body")
    let outcome = try workplace.run("/bin/bash", ["-e", workplace.write("session.sh", script)], within: 180)
    #expect(outcome.status == 0, "\(outcome.errors)")
    let output = outcome.output
    #expect(output.contains("listening on http://127.0.0.1:\(workplace.port)"))
    #expect(output.matches(of: #/  fleet  sim-\d+  /#).count == 3)
    #expect(output.contains(/\{"drivers":\[\{"driverId":"sim-/))
    #expect(output.contains("10 of 10 fixes sent as driver D1 on trip T1"))
    #expect(output.contains("trip T1: accepted, driver D1"))
    #expect(output.matches(of: #/  trip:T1  D1  /#).count == 10, "each recorded position comes back, on the trip")
    #expect(output.contains(#"{"accepted":1,"duplicates":0,"rejected":[]}"#))
    #expect(output.contains(#"{"driverId":"D2","status":"available","latitude":37.7749,"#))
    #expect(output.contains(#"{"channel":"driver:D2","sequence":1}"#))
    #expect(output.contains(/\{"tripId":"T2","status":"requested"/))
    #expect(output.contains(/\{"fenceId":"downtown"/))
    #expect(try workplace.read("T1.gpx").components(separatedBy: "<trkpt").count > 2)
    #expect(outcome.errors.contains("event=stopped"), "the session ends its hub")
  }

  @Test(
    "the first commands for operators run one after the other, as they stand",
    .enabled(if: Program.exists("openssl"), "needs openssl"))
  func operating() throws {
    let workplace = try Workplace()
    let blocks = try Document("deploy/README.md").indentedCommands(behind: "## Try it here")
    #expect(blocks.count == 3, "the sample settings, TLS, tokens")
    let settings = Document.root.appending(path: "deploy/locationhub.conf").path
    // The first one is left by hand, once it listens: `errors` is where the script's log goes.
    let listens = "until grep -q event=listening errors; do sleep 0.1; done"
    var script = "set -m\n" + blocks.map { workplace.moved($0) }.joined(separator: "\n")
    script.replace(
      "--token-keys hub.key\n", with: "--token-keys hub.key --drain-delay 0 & \(listens); kill %%; wait\n",
      maxReplacements: 1)
    script.replace("deploy/locationhub.conf", with: "'\(settings)'")
    script.replace("kill %%", with: "kill %%; wait")
    let path = "export PATH=\"\(workplace.path):$PATH\"\n"
    let outcome = try workplace.run("/bin/bash", ["-e", workplace.write("operating.sh", path + script)], within: 180)
    #expect(outcome.errors.matches(of: /event=listening/).count == 3, "\(outcome.errors)")
    #expect(outcome.errors.matches(of: /event=stopped/).count == 3, "\(outcome.errors)")
    #expect(outcome.output.contains("https://") && outcome.output.contains("tokens accepted"))
  }

  @Test(
    "the README's client in Python runs as it stands",
    .enabled(if: Program.python != nil, "needs the environment that Tests/Foreign/run.sh makes"))
  func python() throws {
    let workplace = try Workplace()
    let hub = try HubProcess.serve(port: workplace.port)
    let drivers = try HubProcess(["simulate", "--url", "ws://127.0.0.1:\(workplace.port)/v1/ws", "--drivers", "5"])
    try drivers.waitForOutput("5 of 5 drivers connected")
    let script = try workplace.write("client.py", workplace.moved(Document("README.md").code("python")))
    let outcome = try workplace.run(try #require(Program.python), [script], within: 180)
    #expect(outcome.status == 0, "\(outcome.errors)")
    let types = outcome.output.split(separator: "\n").compactMap { $0.split(separator: " ").first.map(String.init) }
    #expect(types == ["connected", "subscribed", "area_update", "area_update", "area_update"])
    drivers.send(signal: SIGTERM)
    #expect(try drivers.outcome().status == 0)
    hub.send(signal: SIGTERM)
    #expect(try hub.outcome().status == 0)
  }

  @Test("the example of POST /v1/notifications is answered as the specification says")
  func notification() throws {
    let text = try Document("protocol/http.md").text
    let example = try #require(
      text.firstMatch(of: #/→ POST /v1/notifications\n(?<body>(?s).*?)\n *← 201 (?<answer>[^\n]*)/#))
    let hub = try TestHub()
    #expect(try hub.post("/v1/trips?role=ops&id=o", #"{"tripId":"trip-7","riderId":"r1"}"#).status == 201)
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:trip-7")
    for status in [201, 200] {
      let answer = try hub.post("/v1/notifications?role=ops&id=o", String(example.body))
      #expect(answer.status == status && answer.text == String(example.answer))
    }
    let heard = try rider.receive("notification")
    #expect(heard.string("title") == "Gate 4" && heard.object("data")?["gate"] as? Int == 4)
    #expect(try rider.settle().isEmpty)
  }

  @Test("every link in the documents leads to a file, and to a heading that it has")
  func links() throws {
    var headings: [String: Set<String>] = [:]
    let documents = try Document.all()
    for path in documents {
      let lines = try Document(path).text.split(separator: "\n").filter { $0.hasPrefix("#") }
      headings[path] = Set(
        lines.map { line in
          let title = line.drop { $0 == "#" || $0 == " " }.lowercased()
          return String(title.filter { $0.isLetter || $0.isNumber || "-_ ".contains($0) }.map { $0 == " " ? "-" : $0 })
        })
    }
    for path in documents {
      for link in try Document(path).text.matches(of: /\]\(([^)\s#]*)#?([^)\s]*)\)/).map(\.output)
      where !link.1.hasPrefix("http") {
        let folder = (path as NSString).deletingLastPathComponent as NSString
        let target =
          link.1.isEmpty ? path : (folder.appendingPathComponent(String(link.1)) as NSString).standardizingPath
        #expect(
          FileManager.default.fileExists(atPath: Document.root.appending(path: target).path), "\(path): \(link.0)")
        if let known = headings[target], !link.2.isEmpty {
          #expect(known.contains(String(link.2)), "\(path): \(link.0)")
        }
      }
    }
  }

  @Test("a hub understands every example that a client sends")
  func examples() throws {
    let hub = try TestHub()
    for line in try Document("protocol/examples.ndjson").text.split(separator: "\n") {
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
      let example = try #require(object as? [String: Any])
      guard example["direction"] as? String == "client" else { continue }
      let time = try #require(example["time"] as? String)
      let message = try JSONSerialization.data(withJSONObject: try #require(example["message"]))
      let driver = try Peer(port: hub.port, query: "role=driver&id=driver-12", time: time)
      _ = try driver.receive("connected")
      try driver.send(text: String(decoding: message, as: UTF8.self))
      let codes = try driver.settle().compactMap(\.code)
      // The examples are a story that a driver's session alone does not live through.
      let expected: Set = ["forbidden", "unknown_trip", "invalid_transition", "unknown_channel", "not_found"]
      #expect(Set(codes).isSubset(of: expected), "\(codes): \(line)")
      try driver.send(bytes: Peer.frame([0x03, 0xE8], opcode: 8))
      #expect(try driver.receiveClose().code == 1000, "before the next, so that none replaces another")
    }
  }

  @Test("the sample settings are accepted")
  func sample() throws {
    let key = FileManager.default.temporaryDirectory.appending(path: "key-\(UUID().uuidString)").path
    defer { unlink(key) }
    try "0123456789abcdef0123456789abcdef\n".write(toFile: key, atomically: true, encoding: .utf8)
    let settings = Document.root.appending(path: "deploy/locationhub.conf").path
    let hub = try HubProcess([
      "serve", "--config", settings, "--port", "0", "--loops", "1", "--token-keys", key, "--drain-delay", "0",
    ])
    try hub.waitUntilItListens()
    #expect(
      try RawConnection(port: hub.port).statusOfUpgrade("/v1/ws?role=rider&id=r1") == 401,
      "the sample lets nobody in without a token")
    let token = try HubProcess.run(["token", "--key", key, "--role", "rider", "--sub", "r1"]).output
    let rider = try Peer(port: hub.port, query: "access_token=\(token.filter { !$0.isWhitespace })")
    #expect(try rider.receive("connected").number("heartbeatInterval") == 30)
  }

  @Test("the sample sets nothing that serve does not know, and the overview's lines fit")
  func help() throws {
    let serve = try HubProcess.run(["serve", "--help"]).output
    for line in try Document("deploy/locationhub.conf").text.split(separator: "\n") where !line.hasPrefix("#") {
      let name = try #require(line.split(separator: " ").first)
      #expect(serve.contains("--\(name) ") || serve.contains("--\(name)\n"))
    }
    let overview = try HubProcess.run(["--help"]).output
    for line in overview.split(separator: "\n") { #expect(line.count <= 100, "\(line)") }
    for verb in try Document("README.md").text.matches(of: /`(\w+)`/).map(\.1)
    where ["serve", "demo", "replay", "watch", "filter", "simulate"].contains(verb) {
      #expect(overview.contains("  \(verb) "))
    }
  }
}

/// A file of the repository.
struct Document {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  let text: String

  init(_ path: String) throws {
    text = try String(contentsOf: Document.root.appending(path: path), encoding: .utf8)
  }

  /// The paths of all documents.
  static func all() throws -> [String] {
    try ["", "protocol", "protocol/refused", "deploy", "loadtest", "loadtest/results"].flatMap { folder in
      try FileManager.default.contentsOfDirectory(atPath: root.appending(path: folder).path)
        .filter { $0.hasSuffix(".md") }.map { (folder as NSString).appendingPathComponent($0) }
    }
  }

  /// The indented blocks behind a heading, up to the next one, without their indentation: commands for a shell.
  func indentedCommands(behind heading: String) throws -> [String] {
    guard let start = text.range(of: heading + "\n") else { throw PeerError.unexpected("no heading \(heading)") }
    let section = text[start.upperBound...]
    var blocks: [String] = []
    var isInside = false
    for line in section.prefix(upTo: section.range(of: "\n## ")?.lowerBound ?? section.endIndex).split(
      separator: "\n", omittingEmptySubsequences: false)
    {
      let isCommand = line.hasPrefix("    ")
      if isCommand, !isInside { blocks.append("") }
      if isCommand { blocks[blocks.count - 1] += line.drop { $0 == " " } + "\n" }
      isInside = isCommand
    }
    return blocks
  }

  /// The first fenced block in this language.
  func code(_ language: String) throws -> String {
    guard let start = text.range(of: "```\(language)\n"),
      let end = text.range(of: "```", range: start.upperBound..<text.endIndex)
    else { throw PeerError.unexpected("no block of \(language)") }
    return String(text[start.upperBound..<end.lowerBound])
  }
}

enum Program {
  static func exists(_ name: String) -> Bool {
    ["/usr/bin/", "/bin/", "/usr/local/bin/"].contains { FileManager.default.isExecutableFile(atPath: $0 + name) }
  }

  /// A Python that has `websockets`, where Tests/Foreign/run.sh has made one.
  static let python: String? = {
    let environment = Document.root.appending(path: ".build/foreign-venv")
    let isReady = FileManager.default.fileExists(atPath: environment.appending(path: "ready").path)
    return isReady ? environment.appending(path: "bin/python").path : nil
  }()
}

/// A folder that goes with its test, with a `locationhub` in it that uses a port of its own instead of 8080.
private final class Workplace {
  private let folder: URL
  let port: UInt16

  var path: String { folder.path }

  init() throws {
    port = try Listener().port  // free again when this line is over
    folder = FileManager.default.temporaryDirectory.appending(path: "hub-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let wrapper = """
      #!/bin/sh
      verb=$1; shift
      case $verb in
        serve) exec '\(HubProcess.executable?.path ?? "")' serve --port \(port) "$@" ;;
        token) exec '\(HubProcess.executable?.path ?? "")' token "$@" ;;
        *) case " $* " in *" --url "*) exec '\(HubProcess.executable?.path ?? "")' "$verb" "$@" ;; esac
          exec '\(HubProcess.executable?.path ?? "")' "$verb" --url ws://127.0.0.1:\(port)/v1/ws "$@" ;;
      esac
      """
    let file = try write("locationhub", wrapper)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: file)
  }

  deinit {
    do { try FileManager.default.removeItem(at: folder) } catch { print("left behind: \(folder.path): \(error)") }
  }

  /// The text with this folder for /tmp, and this port for the usual one.
  func moved(_ text: String) -> String {
    text.replacing("/tmp/", with: path + "/").replacing("127.0.0.1:8080", with: "127.0.0.1:\(port)")
      .replacing("localhost:8080", with: "localhost:\(port)")
  }

  func read(_ name: String) throws -> String {
    try String(contentsOf: folder.appending(path: name), encoding: .utf8)
  }

  func write(_ name: String, _ text: String) throws -> String {
    let file = folder.appending(path: name)
    try text.write(to: file, atomically: true, encoding: .utf8)
    return file.path
  }

  /// Runs a program to its end, in this folder.
  func run(_ program: String, _ arguments: [String], within seconds: Double) throws -> ProcessOutcome {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.currentDirectoryURL = folder
    let output = folder.appending(path: "output").path
    let errors = folder.appending(path: "errors").path
    for file in [output, errors] { try Data().write(to: URL(fileURLWithPath: file)) }
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
    process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: errors))
    let ended = DispatchSemaphore(value: 0)
    process.terminationHandler = { _ in ended.signal() }
    try process.run()
    guard ended.wait(timeout: .now() + seconds) == .success else {
      process.terminate()
      throw PeerError.timedOut(waitingFor: "the end of \(program)")
    }
    return ProcessOutcome(
      status: process.terminationStatus, output: try String(contentsOfFile: output, encoding: .utf8),
      errors: try String(contentsOfFile: errors, encoding: .utf8))
  }
}
