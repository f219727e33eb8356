// Command lines, settings files and the environment: what they may contain, and the messages for mistakes.
import HubTestSupport
import Testing

@testable import HubCommandLine

private struct Kettle: Equatable {
  var litres = 2
  var degrees = 100.0
  var bytes = 64 << 10
  var isLoud = false
  var keep: Int64 = 90_000
  var lid: String?
  var names: [String] = []
}

private let settings: [Setting<Kettle>] = [
  Setting("litres", \.litres, .whole(1...64), "N", "how much it holds"),
  Setting("degrees", \.degrees, .number(0...100), "C", "how hot"),
  Setting("room", \.bytes, .size(1...(1 << 20)), "BYTES", "for its log"),
  Setting("loud", \.isLoud, "it whistles"),
  Setting("keep", \.keep, .duration, "TIME", "warm for so long").live(\.keep),
  Setting("lid", \.lid, .text, "TEXT", "its colour", otherwise: "as the pot"),
  Setting("name", "TEXT", "what it is called", mustBe: "short", repeats: true) {
    $0.names.append($1)
    return $1.utf8.count < 9
  },
]

private func kettle(
  _ words: [String], file: String? = nil, environment: [String: String] = [:]
) throws(CommandError) -> Kettle {
  var kettle = Kettle()
  var arguments = Arguments(collecting: words, verb: "boil", options: settings.map { $0.option(kettle) })
  arguments.merge(environment: environment, prefix: "KETTLE")
  if let file { arguments.merge(configuration: file, file: "hub.conf") }
  arguments.collect(settings, into: &kettle)
  try arguments.faults.check()
  return kettle
}

@Suite struct ArgumentsTests {
  @Test("each kind of value is read, and what is not given stays as it is")
  func reads() throws {
    let words = ["--litres", "3", "--degrees=99.5", "--room", "512K", "--loud", "--keep", "2h", "--lid", "red"]
    let read = try kettle(words + ["--name", "a", "--name=b"])
    #expect(
      read
        == Kettle(
          litres: 3, degrees: 99.5, bytes: 512 << 10, isLoud: true, keep: 7_200_000, lid: "red", names: ["a", "b"]))
    #expect(try kettle([]) == Kettle())
  }

  @Test("a live setting copies its value, and no other, also as a part")
  func live() throws {
    struct Kitchen {
      var kettle = Kettle()
    }
    let other = Kitchen(kettle: Kettle(litres: 3, keep: 7, lid: "red"))
    var kitchen = Kitchen()
    for setting in settings.map({ $0.part(of: \Kitchen.kettle) }) {
      #expect(setting.isLive == (setting.name == "keep"))
      setting.copy?(&kitchen, other)
    }
    #expect(kitchen.kettle == Kettle(keep: 7))
  }

  @Test("a file of an editor of Windows is read as any other, and its lines are counted")
  func windows() throws {
    #expect(try kettle([], file: "\u{FEFF}litres = 3\r\nlid = red # of iron\r\n").litres == 3)
    #expect(try kettle([], file: "lid = red#1 \t# of iron").lid == "red#1")
    #expect(throws: CommandError.usage("hub.conf:3: degrees must be a number from 0 to 100, not 300")) {
      try kettle([], file: "\u{FEFF}litres = 3\r\n\r\ndegrees = 300\r\n")
    }
  }

  @Test("every default is written as it would be given")
  func defaults() {
    let help = settings.map { $0.option(Kettle()).help }
    #expect(
      help == [
        "how much it holds (2)", "how hot (100)", "for its log (64K)", "it whistles", "warm for so long (90s)",
        "its colour (as the pot)", "what it is called",
      ])
  }

  @Test(
    "a mistake is named with where it stands",
    arguments: [
      (["--litres", "65"], "--litres must be a whole number from 1 to 64, not 65"),
      (["--degrees", "x"], "--degrees must be a number from 0 to 100, not x"),
      (["--room", "2M"], "--room must be a number of bytes like 4096, 64K, 500M or 64G, from 1 to 1048576, not 2M"),
      (["--keep", "0s"], "--keep must be a time like 90s, 15m, 36h or 30d, not 0s"),
      (["--name", "far too long"], "--name must be short, not far too long"),
      (["--litre", "1"], "boil has no option --litre; did you mean --litres?"),
      (["--litres"], "--litres needs a value: N"), (["--lid", "--loud"], "--lid needs a value: TEXT"),
      (["--=1"], "boil has no option --"), (["--loud=true"], "--loud takes no value"),
      (["--lid", "a", "--lid", "b"], "--lid is given twice"), (["water"], "boil takes no operand: water"),
    ])
  func mistakes(words: [String], message: String) {
    #expect(throws: CommandError.usage(message)) { try kettle(words) }
  }

  @Test(
    "a mistake in a file is named with its line",
    arguments: [
      ("litres = 1\n\nlitres = 65", "hub.conf:3: litres is set twice"),
      ("# one\nlitres = 65", "hub.conf:2: litres must be a whole number from 1 to 64, not 65"),
      ("loud = maybe", "hub.conf:1: loud must be true or false, not maybe"),
      ("cup = 1", "hub.conf:1: there is no setting cup"),
      ("litters = 1", "hub.conf:1: there is no setting litters; did you mean litres?"),
      ("litres", "hub.conf:1: expected name = value"),
    ])
  func fileMistakes(text: String, message: String) {
    #expect(throws: CommandError.usage(message)) { try kettle([], file: text) }
  }

  @Test("the command line wins over the environment, and that over the file")
  func order() throws {
    let environment = ["KETTLE_LITRES": "4", "KETTLE_DEGREES": "50", "KETTLE_NAME": "a b", "OTHER": "1"]
    let file = "litres = 5\ndegrees = 60\nroom = 1K\nname = c\nloud = true"
    let read = try kettle(["--litres", "3"], file: file, environment: environment)
    #expect(read == Kettle(litres: 3, degrees: 50, bytes: 1024, isLoud: true, names: ["a", "b"]))
  }

  @Test(
    "a mistake in the environment is named with its variable",
    arguments: [
      ("KETTLE_LITRES", "4x", "KETTLE_LITRES must be a whole number from 1 to 64, not 4x"),
      ("KETTLE_LOUD", "yes", "KETTLE_LOUD must be true or false, not yes"),
      (
        "KETTLE_LITRE", "1",
        "there is no setting for the variable KETTLE_LITRE; did you mean KETTLE_LITRES?"
      ),
      ("KETTLE_ZZZZ", "1", "there is no setting for the variable KETTLE_ZZZZ"),
    ])
  func environmentMistakes(variable: String, value: String, message: String) {
    #expect(throws: CommandError.usage(message)) { try kettle([], environment: [variable: value]) }
  }

  @Test("all mistakes are reported at once, wherever they are")
  func allMistakes() {
    let words = ["--litres", "65", "--bogus", "--loud=1", "water"]
    let error = #expect(throws: CommandError.self) {
      try kettle(words, file: "degrees = hot\ncup = 1", environment: ["KETTLE_KEEP": "0s"])
    }
    #expect(
      error
        == .usage(
          """
          7 faults
            boil has no option --bogus
            --loud takes no value
            boil takes no operand: water
            hub.conf:2: there is no setting cup
            --litres must be a whole number from 1 to 64, not 65
            hub.conf:1: degrees must be a number from 0 to 100, not hot
            KETTLE_KEEP must be a time like 90s, 15m, 36h or 30d, not 0s
          """))
  }

  @Test(
    "the setting that was probably meant is found",
    arguments: [("litre", "litres"), ("litresx", "litres"), ("degres", "degrees"), ("kepe", "keep"), ("x", nil)])
  func near(word: String, name: String?) {
    #expect(nearest(to: word, among: settings.map(\.name)) == name)
  }

  @Test("a size that has no room in an Int is refused")
  func hugeSizes() {
    for text in ["9223372036854775807G", "-1", "", "K", "1T"] {
      #expect(ValueKind<Int>.size().read(text) == nil, "\(text)")
    }
    #expect(ValueKind<Int>.size().read("1024M") == 1 << 30)
  }
}
