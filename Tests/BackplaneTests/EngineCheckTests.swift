// Which engines are refused by what they say of themselves.
import HubBytes
import Testing

@testable import HubBackplane

@Suite struct EngineCheckTests {
  private func refusal(_ version: String) -> String? {
    EngineCheck.version(.bulk(Array("# Server\r\nredis_version:\(version)\r\nredis_mode:standalone\r\n".utf8)))
  }

  @Test("An engine before 6.2, whose ACL has no rules of channels, is refused; 6.2 and all later ones are not")
  func version() {
    #expect(refusal("6.0.16") == "redis_version:6.0.16: 6.2 or newer is needed, for ACL rules of channels")
    for old in ["5.0.14", "6.0.0", "6.1.240"] { #expect(refusal(old) != nil, "\(old)") }
    for good in ["6.2.0", "6.2.14", "7.0.15", "7.2.4", "8.0.1", "10.0.0"] { #expect(refusal(good) == nil, "\(good)") }
    #expect(refusal("unstable") == nil)
  }
}
