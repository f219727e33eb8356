// What `serve --cluster` says of its file: all faults at once, each with its line.
import Foundation
import Testing

extension EndToEnd {
  @Suite(.enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  struct ClusterFiles {}
}

extension EndToEnd.ClusterFiles {
  private func check(_ text: String, _ outcome: (ProcessOutcome, String) throws -> Void) throws {
    let file = try TemporaryFile(text)
    try outcome(try HubProcess.run(["serve", "--check", "--dev-auth", "--cluster", file.path]), file.path)
  }

  @Test(
    "a good file is taken, with several nodes of the bus and sentinels for the ledger, from whichever editor",
    arguments: ["\n", "\r\n"])
  func good(lineEnd: String) throws {
    let (key, password) = (
      try TemporaryFile(String(repeating: "0123456789abcdef", count: 4) + "\n"), try TemporaryFile("secret\n")
    )
    let text = """
      name = hub-a  # a comment
      advertise = 10.0.0.1:8080
      bus = redis://10.0.0.9:6379
      bus = redis://10.0.0.8:6379
      ledger = sentinel://10.0.0.9:26379,10.0.0.8:26379/hubs
      ledger = redis://10.0.0.7:6379
      key-file = \(key.path)
      user = hub
      password-file = \(password.path)

      """
    try check(text.replacing("\n", with: lineEnd)) { outcome, _ in #expect(outcome.status == 0, "\(outcome.errors)") }
  }

  @Test("what is malformed, unknown, given twice, pointless or unreadable is reported at once, each with its line")
  func faults() throws {
    let key = try TemporaryFile("abc\n")
    try check(
      """
      name = hub a
      advertise = here or there
      bus = redis://engine:6379
      bus = redis://10.0.0.9:6379
      bus = redis://10.0.0.9:6379
      ledger = http://10.0.0.9:6379


      key-file = \(key.path)
      ca = /nonexistent/ca.pem
      user = hub
      sentinel-user = hub
      sentinel-password-file = /nonexistent/password
      bux = redis://10.0.0.9:6379
      nonsense
      """
    ) { outcome, path in
      #expect(outcome.status == 2)
      for fault in [
        "1: name must be 1-32 letters, digits, -, _ and ., not hub a", "2: advertise must be HOST:PORT",
        "3: bus must be redis://HOST:PORT or rediss://HOST:PORT, HOST numeric, not redis://engine:6379",
        "5: bus: redis://10.0.0.9:6379 is a node already", "6: ledger must be redis://HOST:PORT",
        "9: key-file \(key.path): expected one or two lines of 64 hex digits",
        "10: ca: cannot read /nonexistent/ca.pem",
        "11: user needs password-file", "13: sentinel-password-file: cannot read /nonexistent/password",
        "14: there is no setting bux; did you mean bus?", "15: expected name = value",
      ] {
        #expect(outcome.errors.contains("\(path):\(fault)"), "\(outcome.errors)")
      }
    }
  }

  @Test("what is empty, has no use, or is too much is reported, each with its line")
  func emptyOrUnused() throws {
    let (key, empty) = (try TemporaryFile(String(repeating: "ab", count: 32)), try TemporaryFile("\n"))
    try check(
      """
      name = hub-a
      advertise = 10.0.0.1
      bus = redis://10.0.0.9:6379
      ledger = redis://10.0.0.9:6379
      key-file = \(key.path)
      ca =
      user =
      password-file = \(empty.path)
      sentinel-user = hub
      sentinel-password-file = \(key.path)
      """
    ) { outcome, path in
      for fault in [
        "2: advertise must be HOST:PORT, not 10.0.0.1", "6: ca must be FILE, and is empty",
        "6: ca is for rediss:// and sentinels://, and neither bus nor ledger has such an address",
        "7: user must not be empty", "8: password-file: \(empty.path): its first line is empty",
        "9: sentinel-user is for a ledger of sentinel://HOST:PORT", "10: sentinel-password-file is for a ledger of",
      ] {
        #expect(outcome.errors.contains("\(path):\(fault)"), "\(outcome.errors)")
      }
    }
    let nodes = (1...64).map { "bus = redis://10.0.0.\($0):6379\n" }.joined()
    let sentinels = (1...10).map { "10.0.0.\($0):26379" }.joined(separator: ",")
    let ledgers = ([1] + (1...16)).map { "ledger = redis://10.0.0.\($0):6379\n" }.joined()
    try check("\(nodes)ledger = sentinel://\(sentinels)/hubs\n\(ledgers)") { outcome, path in
      #expect(outcome.errors.contains("\(path):67: ledger: redis://10.0.0.1:6379 is a node already"))
      #expect(outcome.errors.contains("\(path):81: ledger: there are 16 ledgers at most"), "\(outcome.errors)")
      #expect(outcome.errors.contains("\(path):64: bus: a bus has 63 nodes at most"), "\(outcome.errors)")
      #expect(
        outcome.errors.contains("\(path):65: ledger must be redis://") && outcome.errors.contains("up to 9 sentinels"))
    }
  }

  @Test("what is missing is named, all of it")
  func missing() throws {
    try check("# nothing\n") { outcome, path in
      #expect(outcome.status == 2)
      for name in ["name", "advertise", "key-file", "bus", "ledger"] {
        #expect(outcome.errors.contains("\(path): give \(name) = "), "\(outcome.errors)")
      }
    }
  }
}
