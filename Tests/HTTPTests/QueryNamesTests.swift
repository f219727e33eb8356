// Names in a query that nobody knows, or that come twice.
import Testing

@testable import HubHTTP

@Suite struct QueryNamesTests {
  private func fault(_ text: String, passingOthers: Bool = false) -> Query.Fault? {
    Query(Array(text.utf8)[...]).fault(knowing: ["limit", "role", "id"], passingOthers: passingOthers)
  }

  @Test(
    "known names are taken once each, however they are encoded",
    arguments: ["", "limit=1", "id=1&role&%6Cimit=", "&&id=2&"])
  func known(text: String) {
    #expect(fault(text) == nil)
  }

  @Test("the first name that is unknown is named, with those that are known")
  func unknown() {
    #expect(fault("id=1&limt=2&x=3") == .unknown("limt", known: "limit, role, id"))
    #expect(fault("limit%zz=2") == .unknown("limit%zz", known: "limit, role, id"))
    #expect(fault("Limit=2")?.description == "there is no parameter Limit here, only limit, role, id")
    #expect(fault("x=1&id=2", passingOthers: true) == nil)
  }

  @Test("a name that comes twice is named, also where it is encoded otherwise")
  func repeated() {
    #expect(fault("id=1&role=x&id=2") == .repeated("id"))
    #expect(fault("id=1&%69d=1") == .repeated("id"))
    #expect(fault("x=1&id=1&id=1", passingOthers: true) == .repeated("id"))
    #expect(fault("id&id")?.description == "id is given twice")
  }
}
