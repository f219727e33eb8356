// Scenario files and the command line: what they may contain, and the messages for mistakes.
import Glibc
import HubCommandLine
import HubTransport
import Testing

@testable import HubLoadTestKit

@Suite struct ScenarioTests {
  private func parse(_ text: String) throws(LoadTestError) -> Scenario {
    try Scenario(name: "test", parsing: text, file: "test.scenario")
  }

  @Test("a file says what there is, and what it leaves out is as in an empty scenario")
  func reads() throws {
    let scenario = try parse(
      """
      # a comment
      about = two drivers, a storm
      drivers = 2   # and one behind a setting
      rate=0.5
      storm = 10
      cut = on
      serve = --accept-rate 0 --heartbeat 5
      """)
    #expect(scenario.about == "two drivers, a storm" && scenario.drivers == 2 && scenario.rate == 0.5)
    #expect(scenario.storm == 10 && scenario.cut && scenario.serve == ["--accept-rate", "0", "--heartbeat", "5"])
    #expect(scenario.duration == Scenario().duration && scenario.sessions == 12)
    #expect(scenario.settings.map(\.name) == ["drivers", "rate", "storm", "cut"])
  }

  @Test(
    "a mistake is named with its line",
    arguments: [
      ("drivers = 2\nriders = 3", "test.scenario:2: there is no setting riders"),
      ("drivers", "test.scenario:1: expected name = value"),
      ("drivers = 1\n\ndrivers = 2", "test.scenario:3: drivers is set twice"),
      ("drivers = -1", "test.scenario:1: drivers must be a whole number from 0 to 2000000, not -1"),
      ("drivers = many", "test.scenario:1: drivers must be a whole number from 0 to 2000000, not many"),
      ("rate = 0", "test.scenario:1: rate must be a number from 0.001 to 1000, not 0"),
      ("cut = yes", "test.scenario:1: cut must be on or off, not yes"),
      ("rate = 2", "test.scenario: there is nobody in it"),
      (
        "drivers = 1\nbatch = 5\nriders-per-trip = 1",
        "test.scenario: batch and riders-per-trip do not go together: riders would get each fix"
      ),
      (
        "drivers = 1\nchurners = 5",
        "test.scenario: churners need churn: how many of them leave and come again in a second"
      ),
      ("drivers = 1\ncut = on", "test.scenario: cut needs a storm: sessions that are cut off"),
      ("idle = 1\nchurn = 5", "test.scenario: churn needs churners"),
      ("idle = 1\nwatchers = 5", "test.scenario: watchers need drivers to be seen"),
      (
        "drivers = 1\nriders-per-trip = 1\nwatchers = 5",
        "test.scenario: watchers go with drivers that are free: without bookings, batch, churners and riders-per-trip"
      ),
    ])
  func mistakes(text: String, message: String) {
    do throws(LoadTestError) {
      _ = try parse(text)
      Issue.record("it was read: \(text)")
    } catch {
      #expect(error.description == message)
    }
  }

  @Test("every setting reads what it writes", arguments: Scenario.settings.map(\.name))
  func roundTrip(name: String) throws {
    let setting = try #require(Scenario.settings.first { $0.name == name })
    var scenario = Scenario()
    let written = try #require(setting.write(scenario))
    #expect(setting.read(&scenario, written))
    #expect(scenario == Scenario())
  }
}

@Suite struct LoadArgumentsTests {
  private let folders = [repositoryFolder + "/loadtest/scenarios"]

  private func arguments(_ words: String...) throws(LoadTestError) -> LoadArguments {
    try LoadArguments(words, executable: "/hub", folders: folders)
  }

  @Test("every scenario of the repository can be read, and is listed with what it is about")
  func all() throws {
    let names = LoadArguments.names(in: folders)
    #expect(names.count >= 10)
    for name in names {
      let scenario = try LoadArguments.scenario(named: name, in: folders)
      #expect(!scenario.about.isEmpty && scenario.name == name)
      #expect(LoadArguments.help(folders: folders).contains(scenario.about))
    }
  }

  @Test("options change the scenario and the run; what stands behind -- is the hub's")
  func options() throws {
    let read = try arguments(
      "trip", "--drivers", "7", "--duration=3", "--threads", "2", "--bound", "200us", "--max", "--json", "a.json", "--",
      "--loops", "2")
    #expect(read.scenario.drivers == 7 && read.scenario.duration == 3 && read.run.threads == 2)
    #expect(read.bound == 200 && read.seeksMaximum && read.json == "a.json")
    #expect(read.run.serveOptions == ["--loops", "2"])
    #expect(try arguments("trip", "--url", "http://127.0.0.1:8080/v1/ws").run.address?.port == 8080)
  }

  @Test(
    "a wrong request is reported",
    arguments: [
      ["nowhere"], [], ["trip", "--drivers"], ["trip", "--drivers", "x"], ["trip", "--colour", "red"], ["trip", "9"],
      ["trip", "--bound", "50"], ["trip", "--url", "hub.example:1"],
      ["trip", "--url", "https://hub.example:1"], ["trip", "--threads", "0"], ["idle", "--max"], ["area", "--max"],
      ["trip", "--max", "--riders-per-trip", "0"],
      // What would be without effect.
      ["trip", "--url", "http://127.0.0.1:1", "--against", "b"],
      ["trip", "--bound", "20ms"], ["trip", "--max", "--rounds", "3"], ["reconnect-storm", "--storm", "0"],
      ["churn", "--churn", "0"],
      ["trip", "--url", "http://127.0.0.1:1", "--executable", "b"],
      ["trip", "--url", "http://127.0.0.1:1", "--server-cpu", "0"],
      ["trip", "--url", "http://127.0.0.1:1", "--", "--loops", "2"],
      ["trip", "--url", "http://127.0.0.1:1", "--tls", "on"], ["trip", "--url", "http://127.0.0.1:1", "--ca", "a.pem"],
      ["trip", "--url", "https://127.0.0.1:1", "--ca", "/no/file"],
      ["trip", "--url", "https://127.0.0.1:1", "--ca", "/dev/null"],
      ["trip", "--pid", "1"], ["trip", "--ca", "a.pem"],
      // No process has that number: the kernel's bound is 4,194,304 (proc(5), pid_max).
      ["trip", "--url", "http://127.0.0.1:1", "--pid", "4194305"],
    ])
  func wrong(words: [String]) {
    #expect(throws: LoadTestError.self) { try LoadArguments(words, executable: "/hub", folders: folders) }
  }

  @Test("an unknown option is reported as unknown before it lacks a value, and that the hub's options follow --")
  func unknown() {
    for (words, said) in [
      (["trip", "--nope"], "has no option --nope; "), (["--nope"], "there is no option --nope "),
      (["trip", "--loops", "2"], "behind --: -- --loops 2"),
      (["trip", "--bound", "20ms"], "--bound is what --max keeps"),
      (["trip", "--max", "--rounds", "3"], "--max tries each rate once"),
    ] {
      do throws(LoadTestError) {
        _ = try LoadArguments(words, executable: "/hub", folders: folders)
        Issue.record("\(words) were taken")
      } catch {
        #expect(error.description.contains(said), "\(error)")
      }
    }
  }

  @Test("every verb and every scenario has a help of its own, asked for in front or behind, but not behind --")
  func help() throws {
    for name in CommandVerb.all.map(\.name) + LoadArguments.names(in: folders) {
      let text = try #require(try Help.asked(by: [name, "--help"], folders: folders))
      #expect(text.hasPrefix("usage: hub-loadtest \(name)") && text.contains("exit codes"), "\(text)")
      #expect(try Help.asked(by: ["help", name], folders: folders) == text)
      #expect(try Help.asked(by: [name, "--json", "a", "-h"], folders: folders) == text)
    }
    for verb in CommandVerb.all {
      let text = try #require(try Help.asked(by: ["help", verb.name], folders: folders))
      for option in verb.options { #expect(text.contains("--\(option.name) \(option.placeholder ?? "")")) }
    }
    let trip = try #require(try Help.asked(by: ["trip", "-h"], folders: folders))
    #expect(trip.contains("drivers, each with a trip (0 to 2000000; 2000)") && trip.contains("--executable PATH"))
    #expect(try Help.asked(by: ["trip", "--", "--help"], folders: folders) == nil)
    #expect(try Help.asked(by: ["trip"], folders: folders) == nil && Help.asked(by: [], folders: folders) == nil)
    #expect(throws: LoadTestError.self) { try Help.asked(by: ["help", "nowhere"], folders: folders) }
  }

  @Test("a verb's words are its options and files, and what it would pass over is refused")
  func verbs() throws {
    let options = try Arguments(["a.json", "--html", "x", "b.json"], .report)
    #expect(options.operands == ["a.json", "b.json"] && options.string("html") == "x")
    #expect(try Arguments(["--attackers=7", "--", "--loops", "2"], .abuse).rest == ["--loops", "2"])
    for (words, verb) in [
      (["--nope", "1"], CommandVerb.figures), (["--rounds"], .growth), (["x"], .bench), (["--", "--loops"], .figures),
    ] { #expect(throws: LoadTestError.self) { try Arguments(words, verb) } }
    let scale = try Arguments(["--scale", "100", "--seconds", "1e-9"], .figures)
    #expect(throws: LoadTestError.self) { try scale.number("scale", or: 1, in: 0.001...1) }
    #expect(throws: LoadTestError.self) { try scale.number("seconds", or: 1) }
    let from = try Arguments(["--from", "a", "--rounds", "3"], .figures)
    #expect(throws: LoadTestError.self) { try from.nothingIsMeasured(with: "from", but: ["json"]) }
  }

  @Test("a hub that runs already: its address, its process, and the name that its certificate must be for")
  func target() throws {
    let own = String(getpid())
    #expect(try arguments("trip", "--sample").run.samplesModes && !arguments("trip").run.samplesModes)
    let plain = try arguments("trip", "--pid", own, "--url", "ws://localhost:8080")
    #expect(plain.run.address == .loopback(port: 8080) && plain.run.pid == getpid() && plain.run.tls == nil)
    #expect(!plain.scenario.tls)
    for (url, name) in [
      ("https://localhost:8443", "localhost"), ("wss://127.0.0.1:1/v1/ws", "127.0.0.1"), ("https://[::1]:2/", "::1"),
    ] {
      let read = try arguments("trip", "--url", url)
      #expect(read.run.tls?.name == name && read.run.address != nil && read.scenario.tls)
    }
  }

  @Test("a hub's options that were given win over the scenario's, with their value behind = or as the next word")
  func serveOptions() {
    #expect(ServeOptions.groups(["--a", "1", "--b", "--c", "2"]) == [["--a", "1"], ["--b"], ["--c", "2"]])
    for given in [["--loops", "2"], ["--loops=2"]] {
      #expect(ServeOptions.merged(given, over: ["--loops", "1", "--level", "x"]) == given + ["--level", "x"])
      #expect(ServeOptions.value("--loops", in: ["--a"] + given) == "2")
    }
    #expect(ServeOptions.merged(["--loops-x", "2"], over: ["--loops", "1"]) == ["--loops-x", "2", "--loops", "1"])
    #expect(ServeOptions.value("--loops", in: ["--a", "1"]) == nil && ServeOptions.value("--a", in: ["--a"]) == nil)
    for given in [["--data", "x"], ["--data=x"], ["--no-journal"]] { #expect(ServeOptions.sayWhatIsStored(given)) }
    #expect(!ServeOptions.sayWhatIsStored(["--data-x", "1"]))
  }
}
