// Numbers that no phone means: as large and as small as JSON has them. Whoever follows the driver gets each message of
// them, and the hub goes on.
import HubMessages
import Testing

@testable import HubGateway

@Suite struct ExtremeFixTests {
  @Test(
    "accuracy and speed may be any number from 0 on: raw fixes have them, and positions are numbers",
    arguments: [
      "0", "5e-324", "1e-9", "45035996273704.96", "1e16", "1e154", "1.8e306", "1e307", "1.7976931348623157e308",
    ])
  func numbers(text: String) throws {
    let hub = try HandDrivenHub(clock: HandClock()) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.sessionRate = 0
    }
    let ops = try HandDrivenPeer(hub, role: "ops", id: "o1")
    let driver = try HandDrivenPeer(hub, role: "driver", id: "d1")
    for channel in ["raw:d1", "driver:d1", "fleet"] {
      ops.send(
        HandDrivenPeer.frame(
          #"{"type":"subscribe","payload":{"channel":"\#(channel)"},"timestamp":1763680000000,"messageId":"s"}"#))
    }
    ops.turn()
    for (number, members) in [#""accuracy":\#(text)"#, #""speed":\#(text)"#, #""accuracy":\#(text),"speed":\#(text)"#]
      .enumerated()
    {
      let time = 1_763_680_000_000 + 1000 * number
      driver.send(
        HandDrivenPeer.frame(
          """
          {"type":"location_update","payload":{"latitude":52.5,"longitude":13.4,"timestamp":\(time),"heading":359.999,\
          \(members)},"timestamp":\(time),"messageId":"f\(number)"}
          """))
      driver.turn()
      ops.turn()
      hub.clock.advance(milliseconds: 1000)
    }
    ops.turn()
    let raw = ops.messages.filter { $0.contains(#""channel":"raw:d1""#) && $0.contains(#""verdict""#) }
    #expect(raw.count == 3, "\(ops.messages)")
    let sent = try #require(Double(text))
    for (message, member) in zip(raw, ["accuracy", "speed", "speed"]) {
      let shown = try message.firstMatch(of: Regex(#""\#(member)":([0-9.e+-]+)"#))
      let value = try #require(shown?.output[1].substring.flatMap { Double($0) })
      #expect(abs(value - sent) <= 0.005 || sent > 1e13 && value == sent, "\(member) \(value)")
    }
    // An epoch is drawn at random, and may have such letters.
    #expect(try !ops.messages.contains { try $0.contains(Regex(#"[:\[,]-?(nan|inf)"#)) })
  }
}
