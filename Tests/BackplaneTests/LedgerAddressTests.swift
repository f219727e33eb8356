// Where a ledger is, as its URL says.
import HubBackplane
import Testing

@Suite struct LedgerAddressTests {
  @Test(
    "A node, or sentinels with a name, read and written alike",
    arguments: [
      "redis://10.0.0.9:6379", "rediss://10.0.0.9:6379", "sentinel://10.0.0.1:26379/fleet",
      "sentinel://10.0.0.1:26379,10.0.0.2:26379,[::1]:26379/my-fleet.1", "sentinels://10.0.0.1:1,[::1]:2/fleet",
    ])
  func whole(text: String) throws {
    let address = try #require(LedgerAddress(text))
    #expect("\(address)" == text)
  }

  @Test(
    "What is no such URL is refused",
    arguments: [
      "", "sentinel://", "sentinels://", "sentinelss://10.0.0.1:1/f", "sentinel:///fleet", "sentinel://10.0.0.1:26379",
      "sentinel://10.0.0.1:26379/",
      "sentinel://10.0.0.1:26379/a/b", "sentinel://10.0.0.1:26379,/fleet", "sentinel://10.0.0.1/fleet",
      "sentinel://host:26379/fleet", "sentinel://10.0.0.1:26379/a b", "redis://host:6379", "http://10.0.0.1:1/x",
      "sentinel://10.0.0.1:26379,10.0.0.1:26379/fleet",
      "sentinel://" + (1...10).map { "10.0.0.\($0):1" }.joined(separator: ",") + "/fleet",
    ])
  func refused(text: String) { #expect(LedgerAddress(text) == nil) }
}
