// The file of device keys.
import HubMessages
import HubTokens
import Testing

@Suite struct DeviceKeysTests {
  private let driver = Identifier("d1")!

  @Test("a secret is known by its SHA-256, whatever is around the line")
  func known() throws {
    // FIPS 180-4's example: SHA-256 of "abc".
    let line = "d1 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    #expect(DeviceKeys.line(of: driver, secret: "abc") == line)
    let keys = try DeviceKeys(parsing: Array("# phones\n\n  \(line.uppercased().replacing("D1", with: "d1"))\r\n".utf8))
    #expect(keys.count == 1 && keys.driver(of: Array("abc".utf8)) == driver)
    for secret in ["", "abd", "ABC", "abc\n", String(repeating: "a", count: 300)] {
      #expect(keys.driver(of: Array(secret.utf8)) == nil)
    }
    #expect(DeviceKeys().driver(of: Array("abc".utf8)) == nil)
  }

  @Test("A file has up to 200,000 keys, and a secret up to 256 bytes")
  func limits() throws {
    let text = String(repeating: "a", count: DeviceKeys.maximumSecretBytes + 1)
    let lines = [String(text.dropLast()), text].map { DeviceKeys.line(of: driver, secret: $0) }
    let keys = try DeviceKeys(parsing: Array(lines.joined(separator: "\n").utf8))
    #expect(keys.driver(of: text.utf8.dropLast()) == driver && keys.driver(of: text.utf8) == nil)
    let start = "d1 " + String(repeating: "0", count: 56)
    var file = Array(
      (0..<DeviceKeys.maximumKeys).map { start + String(0x1000_0000 + $0, radix: 16) + "\n" }.joined().utf8)
    #expect(try DeviceKeys(parsing: file).count == DeviceKeys.maximumKeys)
    file += Array(lines[0].utf8)
    #expect(throws: KeyError.tooManyKeys(limit: DeviceKeys.maximumKeys)) { try DeviceKeys(parsing: file) }
  }

  @Test("a driver may have several keys, a key one driver")
  func several() throws {
    let lines = ["a", "b"].map { DeviceKeys.line(of: driver, secret: $0) }
    let keys = try DeviceKeys(parsing: Array(lines.joined(separator: "\n").utf8))
    #expect(keys.count == 2 && keys.driver(of: Array("a".utf8)) == driver && keys.driver(of: Array("b".utf8)) == driver)
    let twice = lines[0] + "\n" + DeviceKeys.line(of: Identifier("d2")!, secret: "a")
    #expect(throws: KeyError.badDeviceLine(2)) { try DeviceKeys(parsing: Array(twice.utf8)) }
  }

  @Test(
    "a line that is none is named by its number",
    arguments: [
      "d1", "d1 abcd", "d1 \(String(repeating: "g", count: 64))", "d 1 \(String(repeating: "a", count: 64))",
      "é \(String(repeating: "a", count: 64))",
    ])
  func bad(line: String) {
    #expect(throws: KeyError.badDeviceLine(2)) { try DeviceKeys(parsing: Array("#\n\(line)\n".utf8)) }
  }
}
