// Channel names, strictly.
import HubGeo
import HubMessages
import Testing

@Suite struct ChannelNames {
  @Test(
    "a channel's name is read and written the same",
    arguments: [
      "trip:t-7", "driver:D.12_x", "fence:f", "area:u28", "area:u281z7kx", "nearby:48.1371,11.5754,500",
      "nearby:-0.5,-180,1000.5", "fleet", "trips", "raw:d.1", "box:11.5,48.1,11.6,48.2",
      "box:179.5,-90,-179.5,90",
      "counts:11.5,48.1,11.6,48.2", "counts:u28/5", "counts:u/3",
    ])
  func roundTrip(_ name: String) throws {
    #expect(try #require(Channel(name)).description == name)
  }

  @Test("a nearby name may be spelled in other ways, and is written in one")
  func canonical() {
    #expect(Channel("nearby:4.81371e1,11.57540,5e2")?.description == "nearby:48.1371,11.5754,500")
  }

  @Test(
    "what is no channel's name is refused",
    arguments: [
      "", ":", "trip", "trip:", "trip:a b", "trip:a:b", "Trip:a", "trips:a", " trip:a", "trip:a ", "trip:ä", "driver:",
      "fence:/", "area:u2", "area:u281z7kxx", "area:u2a", "area:u2i", "area:u2l", "area:u2o", "area:U28", "nearby:",
      "nearby:1,2", "nearby:1,2,3,4", "nearby:91,2,3", "nearby:1,181,3", "nearby:1,2,0", "nearby:1,2,-3",
      "nearby:1,2,1e999",
      "nearby:1, 2,3", "nearby:01,2,3", "nearby:,,", "fleet:", "fleet ", "FLEET", "trips:", "raw", "raw:", "raw:a b",
      "box:", "box:1,2,3",
      "box:1,2,3,4,5", "box:1,4,3,2", "box:1,2,181,4", "box:1,-91,3,4", "box:1,2,3,x", "boxes:1,2,3,4",
      "counts:", "counts:u28", "counts:u28/4", "counts:u281z7k/9", "counts:a/3", "counts:/2", "counts:u28/",
      "counts:u28/5x",
    ])
  func refused(_ name: String) {
    #expect(Channel(name) == nil)
    #expect(errorCode(envelope("subscribe", "{\"channel\":\"\(name)\"}")) == .unknownChannel)
  }

  @Test("a nearby name with other than three numbers is refused with what would be right, however many commas it has")
  func commas() {
    func errorText(_ message: String) -> String? {
      do {
        _ = try readClient(message)
        return nil
      } catch {
        return error.text
      }
    }
    let commas = String(repeating: ",", count: 200_000)
    for name in ["nearby:", "nearby:,,", "nearby:1,2", "nearby:1,2,3,4", "nearby:\(commas)"] {
      let text = errorText(envelope("subscribe", "{\"channel\":\"\(name)\"}"))
      #expect(text?.hasSuffix("three decimal numbers") == true, "\(text ?? "taken")")
    }
    #expect(errorText(envelope("subscribe", #"{"channel":"nearby:91,2,3"}"#))?.contains("latitude") == true)
    #expect(errorText(envelope("subscribe", #"{"channel":"nearby:1,181,3"}"#))?.contains("longitude") == true)
    #expect(errorText(envelope("subscribe", #"{"channel":"nearby:1,2,-3"}"#))?.contains("radius") == true)
  }

  @Test("an id has 1–64 characters")
  func length() {
    #expect(Channel("trip:" + String(repeating: "x", count: 64)) != nil)
    #expect(Channel("trip:" + String(repeating: "x", count: 65)) == nil)
    #expect(errorCode(envelope("subscribe", #"{"channel":7}"#)) == .badMessage)
    #expect(errorCode(envelope("subscribe", "{}")) == .badMessage)
    #expect(errorCode(envelope("unsubscribe", #"{"channel":"x:y"}"#)) == .unknownChannel)
  }
}
